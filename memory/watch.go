package memory

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// watchers are channels that are closed when something changes: one key, those
// with a prefix, a range of them, or anything. Those who wait for the same share
// one channel, so a reader who asks again and again costs nothing more.
//
// A reader asks for its channel before it takes its state, and a writer closes
// channels after it has published: a change that the reader did not see always
// closes.
//
// Why not a channel in every node of the tree, as others do it: nodes do not
// change when an object does, and most stores are never watched this way. What
// is paid instead is a comparison per write with every range that is watched.
type watchers struct {
	count atomic.Int64
	mu    sync.Mutex
	all   chan struct{}
	// size waits for objects to come or go.
	size     chan struct{}
	keys     map[string]chan struct{}
	prefixes map[string]chan struct{}
	ranges   []rangeWatch
}

type rangeWatch struct {
	span
	changed chan struct{}
}

// span is the keys from from up to but not including to; no bound if that is "".
type span struct{ from, to string }

func (r span) has(key string) bool { return key >= r.from && (r.to == "" || key < r.to) }

// prefixSpan is the span of all that begin with prefix.
func prefixSpan(prefix string) span {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 255 {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return span{prefix, string(end)}
}

func (w *watchers) anything() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open(&w.all)
}

func (w *watchers) comings() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open(&w.size)
}

func (w *watchers) open(ch *chan struct{}) <-chan struct{} {
	if *ch == nil {
		*ch = make(chan struct{})
		w.count.Add(1)
	}
	return *ch
}

func (w *watchers) key(key string) <-chan struct{} { return w.named(&w.keys, key) }

func (w *watchers) prefix(prefix string) <-chan struct{} {
	if prefix == "" {
		return w.anything()
	}
	return w.named(&w.prefixes, prefix)
}

func (w *watchers) named(m *map[string]chan struct{}, name string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch, ok := (*m)[name]
	if !ok {
		if *m == nil {
			*m = map[string]chan struct{}{}
		}
		ch = make(chan struct{})
		(*m)[strings.Clone(name)] = ch
		w.count.Add(1)
	}
	return ch
}

func (w *watchers) span(r span) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.ranges, func(have rangeWatch) bool { return have.span == r }); i >= 0 {
		return w.ranges[i].changed
	}
	ch := make(chan struct{})
	w.ranges = append(w.ranges, rangeWatch{r, ch})
	w.count.Add(1)
	return ch
}

// touch closes what waits for a key. The caller has locked mu.
func (w *watchers) touch(key string) {
	w.close(&w.all)
	if ch, ok := w.keys[key]; ok {
		delete(w.keys, key)
		w.close(&ch)
	}
	for prefix, ch := range w.prefixes {
		if strings.HasPrefix(key, prefix) {
			delete(w.prefixes, prefix)
			w.close(&ch)
		}
	}
	w.ranges = slices.DeleteFunc(w.ranges, func(r rangeWatch) bool {
		if !r.has(key) {
			return false
		}
		w.close(&r.changed)
		return true
	})
}

func (w *watchers) close(ch *chan struct{}) {
	if *ch != nil {
		close(*ch)
		*ch = nil
		w.count.Add(-1)
	}
}

// end closes everything, because what was watched is no more.
func (w *watchers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close(&w.all)
	w.close(&w.size)
	for _, m := range []map[string]chan struct{}{w.keys, w.prefixes} {
		for _, ch := range m {
			w.close(&ch)
		}
		clear(m)
	}
	for i := range w.ranges {
		w.close(&w.ranges[i].changed)
	}
	w.ranges = nil
}
