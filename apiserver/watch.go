package apiserver

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// lastBookmark is how long before its end a watch gets a last bookmark. A shorter
// watch gets none.
const lastBookmark = 2 * time.Second

// watch sends the events of a collection until its time is over, its client has
// gone, or it is too far behind.
//
// A watcher holds no events: it has a position in the shared history, and a bounded
// buffer while it writes. It writes everything that has gathered since its last write at
// once, so that each event costs less the more there are.
//
// It returns when the head of the answer has been sent.
func (s *Reader) watch(r *request) (*OpenWatch, error) {
	q, err := r.parseQuery(true)
	if err == nil && r.name != "" {
		err = q.selectOne(r.name)
	}
	if err != nil {
		return nil, err
	}
	version, err := parseVersion(q.ResourceVersion)
	if err != nil {
		return nil, internal(err)
	}
	timeout := time.Duration(30+rand.IntN(30)) * time.Minute
	if q.TimeoutSeconds != nil && *q.TimeoutSeconds != 0 {
		timeout = time.Duration(*q.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	wake := make(chan struct{}, 1)
	from, err := s.state.Watch(ctx, q.watchQuery(version, wake))
	if err != nil && !sendable(err) {
		cancel()
		return nil, err
	}
	out, ctx := s.openStream(ctx, r)
	end := func() {
		out.close()
		if from != nil {
			from.Close()
		}
		cancel()
	}
	if err != nil {
		out.fail(expiredWatch(err, version))
		end()
		return nil, nil
	}
	w := &watcher{request: r, query: q, stream: out, from: from, after: version, wake: wake}
	return &OpenWatch{watcher: w, ctx: ctx, parting: timeout - lastBookmark, end: end}, nil
}

// An OpenWatch is the rest of the answer to a watch.
type OpenWatch struct {
	watcher *watcher
	ctx     context.Context
	parting time.Duration
	end     func()
}

// Run sends events until the watch ends. It must be called, once. Call it from a short stack,
// which lasts for as long as the watch.
func (o *OpenWatch) Run() {
	defer o.end()
	o.watcher.run(o.ctx, o.parting)
}

// Detached says that the watch has taken its connection over, so that the handler of the
// request may return while Run continues in another goroutine. The context of the request
// must not end when the handler returns, as that of an http.Server does.
func (o *OpenWatch) Detached() bool { return o.watcher.out.detached() }

// selectOne selects the object whose name is in the path of a watch. A field selector that
// asks for more is refused, as by a real server: who may only watch objects of a selector
// must not get another one by its name.
func (q *query) selectOne(name string) error {
	if q.Fields != nil {
		if selected, ok := q.Fields.RequiresExactMatch("metadata.name"); !ok || selected != name {
			return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
		return nil
	}
	q.Fields = fields.OneTermEqualSelector("metadata.name", name)
	return nil
}

// watchQuery says how the watch begins. A request that does not mention initial events
// gets them if it names no version.
func (q *query) watchQuery(version int64, wake chan<- struct{}) WatchQuery {
	wanted := q.SendInitialEvents != nil && *q.SendInitialEvents
	to := WatchQuery{
		Selection: q.Selection,
		Objects:   wanted || q.SendInitialEvents == nil && version == 0,
		At:        At{Match: NotOlder, Version: version},
		Wake:      wake,
	}
	if q.ResourceVersion == "" {
		to.At.Match = Latest
	}
	return to
}

// expiredWatch is the status for a watch that cannot begin at a version.
func expiredWatch(err error, version int64) error {
	if errors.Is(err, ErrExpired) {
		return tooOld(version, version+1)
	}
	return err
}

type watcher struct {
	*request
	*query
	*stream
	from Watch
	// after is the version up to which nothing is sent.
	after int64
	// wake receives when there is something to do: to send an event or a bookmark, or to end.
	// Why one channel for all: a select of three costs twice the time, for each event.
	wake chan struct{}
}

func (w *watcher) run(ctx context.Context, parting time.Duration) {
	initial := w.from.Objects()
	for _, e := range initial.Objects {
		if w.selects(e) {
			w.emit(watch.Added, e)
		}
	}
	if wanted := w.SendInitialEvents; wanted != nil && *wanted && w.AllowWatchBookmarks {
		w.bookmark(initial.Version, true)
	}
	w.flush()
	bookmarks := newBookmarks(w.reader.options.BookmarkInterval, parting, w.wake)
	defer bookmarks.timer.Stop()
	defer context.AfterFunc(ctx, func() { signal(w.wake) })()
	for w.err == nil && ctx.Err() == nil {
		told, version, err := w.catchUp()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.fail(err)
			}
			return
		}
		if told {
			continue
		}
		if bookmarks.due.CompareAndSwap(true, false) {
			w.mark(version)
			bookmarks.next()
		}
		<-w.wake
	}
}

// bookmarks says when a watch gets one: at an interval, and shortly before its end. It has
// one timer for both, because there are as many as watches.
type bookmarks struct {
	timer   *time.Timer
	due     atomic.Bool
	every   time.Duration
	parting time.Time // zero after it
}

func newBookmarks(every, parting time.Duration, wake chan<- struct{}) *bookmarks {
	b := &bookmarks{every: every}
	b.timer = time.AfterFunc(time.Hour, func() {
		b.due.Store(true)
		signal(wake)
	})
	if parting > 0 {
		b.parting = time.Now().Add(parting)
	}
	b.next()
	return b
}

// next sets the timer.
func (b *bookmarks) next() {
	wait := b.every
	if left := time.Until(b.parting); !b.parting.IsZero() && left <= wait {
		wait, b.parting = left, time.Time{}
	}
	b.timer.Reset(wait)
}

// catchUp sends the events since its last call.
func (w *watcher) catchUp() (told bool, version int64, err error) {
	events, version, err := w.from.Next()
	if err != nil {
		return false, 0, err
	}
	w.alone = len(events) == 1 && events[0].Gap == nil
	for _, change := range events {
		if err := w.tell(change); err != nil {
			return true, 0, err
		}
	}
	w.alone = false
	w.flush()
	return len(events) > 0, version, nil
}

// mark sends a bookmark to clients that want them. It never sends a version that
// the watch itself has not reached.
func (w *watcher) mark(version int64) {
	if w.AllowWatchBookmarks && version >= w.after {
		w.bookmark(version, false)
		w.flush()
	}
}

// tell sends an event as the selectors show it.
func (w *watcher) tell(change *Event) error {
	switch {
	case change.Version <= w.after:
	case change.Gap != nil:
		return w.sendGap(change)
	case w.Namespace != "" && change.Object.namespace() != w.Namespace:
	case w.all():
		w.emit(change.Type, change.Object)
	default:
		was := change.Old != nil && w.selects(change.Old)
		is := change.Type != watch.Deleted && w.selects(change.Object)
		switch {
		case is && was:
			w.emit(watch.Modified, change.Object)
		case is:
			w.emit(watch.Added, change.Object)
		case was && change.Type == watch.Deleted:
			w.emit(watch.Deleted, change.Object)
		case was:
			w.emit(watch.Deleted, change.left())
		}
	}
	return nil
}

// bridge sends what differs between the two ends of a gap.
//
// Deletes come first, at the version before the gap: a client that is cut off among them
// resumes there, at any server, and misses nothing. Then each object comes at its own
// version: a client that resumes from one of these has everything up to it. It resumes
// at a server that saw the gap, or this one answers that the version is too old. The
// bookmark says that the gap is over.
//
// A client that has come from another server and is in the middle of the gap may hold
// objects that were never seen here.
func (w *watcher) sendGap(change *Event) error {
	gap := change.Gap
	if w.after > gap.From {
		return tooOld(w.after, change.Version)
	}
	for _, c := range gap.Changes {
		if w.sees(c.Old) && (!w.sees(c.New) || c.New.uid != c.Old.uid) {
			w.emit(watch.Deleted, c.left(gap.From))
		}
	}
	for _, c := range gap.Changes {
		switch {
		case !w.sees(c.New):
		case w.sees(c.Old) && c.New.uid == c.Old.uid:
			w.emit(watch.Modified, c.New)
		default:
			w.emit(watch.Added, c.New)
		}
	}
	w.mark(change.Version)
	return nil
}

// sees says whether an object, which may be nil, is in the client's selection.
func (w *watcher) sees(e *Object) bool {
	return e != nil && (w.Namespace == "" || e.namespace() == w.Namespace) && w.selects(e)
}
