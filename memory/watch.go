package memory

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
)

// watchers are the channels of reads whose name ends in Watch. Each is closed when
// the result may have changed, or when the context of the read ends.
//
//   - A reader registers its channel before it takes its state, and a writer closes
//     channels after it has published: a change that the reader did not see always
//     closes the channel.
//   - The same read with the same context returns the same channel, so a reader
//     that polls in a loop costs nothing more.
//   - When a context ends, its registrations are removed. Stale registrations cost
//     neither memory nor a writer's time.
//   - A write looks up the watchers of its keys and visits no others.
//
// Why a context and not a handle to close: code that waits on a channel has a
// context already, and a forgotten handle is a leak that no test of the caller
// shows. Why not a channel in every node of the tree, as other stores do: nodes do
// not change when an object does, and most stores are never watched.
type watchers struct {
	// count is the number of registrations. While it is zero, a writer does not
	// take the lock.
	count atomic.Int64

	mu    sync.Mutex
	keys  map[string]*topic
	spans spanTree
	// size is for objects being added or deleted.
	size topic
	// leases are keyed by the Done channel of the context, nil for one that never
	// ends.
	leases map[<-chan struct{}]*lease
	// ended says that the watched index was dropped.
	ended bool
	// covering is reused for the next written key.
	covering []*topic
}

// subject is what a read watches.
type subject struct {
	kind subjectKind
	span // a single key is the span's From
}

type subjectKind uint8

const (
	ofKey subjectKind = iota
	ofSpan
	ofSize
)

// topic is a subject with its registrations.
type topic struct{ waiting []*registration }

// lease holds all registrations with one context.
type lease struct {
	done       <-chan struct{}
	registered map[subject]*registration
	// release unregisters from the context.
	release func() bool
}

type registration struct {
	subject
	lease   *lease
	topic   *topic
	index   int // in topic.waiting
	changed chan struct{}
}

// alreadyClosed is returned for a context that has ended.
var alreadyClosed = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

func (w *watchers) key(ctx context.Context, key string) <-chan struct{} {
	return w.watch(ctx, subject{ofKey, span{From: key}})
}

func (w *watchers) within(ctx context.Context, of span) <-chan struct{} {
	return w.watch(ctx, subject{ofSpan, of})
}

func (w *watchers) length(ctx context.Context) <-chan struct{} {
	return w.watch(ctx, subject{kind: ofSize})
}

func (w *watchers) watch(ctx context.Context, of subject) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || ctx.Err() != nil {
		return alreadyClosed
	}
	l := w.lease(ctx)
	if r, again := l.registered[of]; again {
		return r.changed
	}
	of.From, of.To = strings.Clone(of.From), strings.Clone(of.To) // they may be slices of a request
	t := w.topicOf(of)
	r := &registration{subject: of, lease: l, topic: t, index: len(t.waiting), changed: make(chan struct{})}
	t.waiting = append(t.waiting, r)
	l.registered[of] = r
	w.count.Add(1)
	return r.changed
}

func (w *watchers) lease(ctx context.Context) *lease {
	done := ctx.Done()
	l := w.leases[done]
	if l == nil {
		l = &lease{done: done, registered: map[subject]*registration{}, release: func() bool { return true }}
		if done != nil {
			l.release = context.AfterFunc(ctx, func() { w.expire(l) })
		}
		if w.leases == nil {
			w.leases = map[<-chan struct{}]*lease{}
		}
		w.leases[done] = l
	}
	return l
}

func (w *watchers) topicOf(of subject) *topic {
	switch of.kind {
	case ofSize:
		return &w.size
	case ofSpan:
		return w.spans.topicOf(of.span)
	}
	t := w.keys[of.From]
	if t == nil {
		if w.keys == nil {
			w.keys = map[string]*topic{}
		}
		t = &topic{}
		w.keys[of.From] = t
	}
	return t
}

// expireChunk is how many registrations of an ended context are removed at a time.
// Writers may run in between.
const expireChunk = 256

// expire closes all registrations with an ended context.
func (w *watchers) expire(l *lease) {
	for more := true; more; {
		more = w.expireSome(l)
	}
}

func (w *watchers) expireSome(l *lease) (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range l.registered {
		if n++; n > expireChunk {
			return true
		}
		w.end(r)
	}
	return false
}

// end closes one registration. The caller of this and the following methods holds
// mu.
func (w *watchers) end(r *registration) {
	t, last := r.topic, len(r.topic.waiting)-1
	if last == 0 {
		w.fire(t)
		return
	}
	t.waiting[r.index] = t.waiting[last]
	t.waiting[r.index].index = r.index
	t.waiting[last] = nil
	t.waiting = t.waiting[:last]
	w.close(r)
}

// fire closes all registrations of a topic, and removes it.
func (w *watchers) fire(t *topic) {
	waiting := t.waiting
	if len(waiting) == 0 {
		return
	}
	t.waiting = nil
	switch of := waiting[0].subject; of.kind {
	case ofKey:
		delete(w.keys, of.From)
	case ofSpan:
		w.spans.remove(of.span)
	}
	for _, r := range waiting {
		w.close(r)
	}
}

// close closes the channel of a registration that has left its topic. The last one
// of a context removes the lease.
func (w *watchers) close(r *registration) {
	close(r.changed)
	w.count.Add(-1)
	l := r.lease
	delete(l.registered, r.subject)
	if len(l.registered) == 0 {
		l.release()
		delete(w.leases, l.done)
	}
}

// touch closes the registrations for a written key.
func (w *watchers) touch(key string) {
	if t := w.keys[key]; t != nil {
		w.fire(t)
	}
	w.covering = w.spans.covering(w.covering[:0], key)
	for _, t := range w.covering {
		w.fire(t)
	}
	clear(w.covering)
}

// resized closes the registrations for added and deleted objects.
func (w *watchers) resized() { w.fire(&w.size) }

// finish closes everything, because the index was dropped.
func (w *watchers) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, l := range w.leases {
		for _, r := range l.registered {
			w.end(r)
		}
	}
}
