package apiserver

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// lastBookmark is how long before its end a watch gets a last bookmark. A shorter
// watch gets none.
const lastBookmark = 2 * time.Second

// watch sends the events of a collection until its time is over, its client has
// gone, or it is too far behind.
//
// A watcher holds no events: it has a position in the shared history, and one
// bounded buffer. It writes everything that has gathered since its last write at
// once, so that each event costs less the more there are.
func (s *Server) watch(r *request) error {
	q, err := r.parseQuery(true)
	if err != nil {
		return err
	}
	version, err := parseVersion(q.ResourceVersion)
	if err != nil {
		return internal(err)
	}
	timeout := time.Duration(30+rand.IntN(30)) * time.Minute
	if q.TimeoutSeconds != nil {
		timeout = time.Duration(*q.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()

	out := s.newStream(r)
	start, err := s.begin(r, q, version)
	if err != nil {
		out.fail(err)
		return nil
	}
	w := &watcher{Server: s, request: r, query: q, stream: out, position: start.position, after: version}
	w.run(ctx, start, timeout-lastBookmark)
	return nil
}

// start is where a watch begins: with these entries, at this version, then with
// the events from this position on.
type start struct {
	entries  []*entry
	initial  bool
	version  int64
	position int
	gone     <-chan struct{}
}

// begin finds the start of a watch; an error is sent inside of the stream.
func (s *Server) begin(r *request, q *query, version int64) (*start, error) {
	s.state.age(r.content)
	state, c := s.state, r.content
	state.mu.RLock()
	defer state.mu.RUnlock()
	here := &start{version: state.version, position: c.history.end(), gone: c.gone}
	wanted := q.SendInitialEvents != nil && *q.SendInitialEvents
	switch {
	case wanted && version > state.version:
		return nil, tooLarge(version, state.version)
	case wanted || q.SendInitialEvents == nil && version == 0:
		here.entries, here.initial = c.span(q.namespace), wanted
		return here, nil
	case version == 0 || version > state.version:
		return here, nil
	}
	position, ok := c.history.since(version)
	if !ok {
		return nil, tooOld(version, c.history.floor)
	}
	here.position = position
	return here, nil
}

type watcher struct {
	*Server
	*request
	*query
	*stream
	position int
	// after is the version up to which nothing is sent.
	after int64
}

func (w *watcher) run(ctx context.Context, from *start, parting time.Duration) {
	w.open()
	for _, e := range from.entries {
		if w.selects(e) {
			w.emit(watch.Added, e)
		}
	}
	if from.initial && w.AllowWatchBookmarks {
		w.bookmark(from.version, true)
	}
	w.flush()
	ticker := time.NewTicker(w.options.BookmarkInterval)
	defer ticker.Stop()
	var last <-chan time.Time
	if parting > 0 {
		timer := time.NewTimer(parting)
		defer timer.Stop()
		last = timer.C
	}
	for w.err == nil {
		told, version, changed, ok := w.catchUp()
		if !ok {
			return // too far behind
		}
		if told {
			continue
		}
		switch w.wait(ctx, changed, from.gone, ticker.C, last) {
		case woken:
		case ticked:
			w.mark(version)
		case vanished:
			w.catchUp() // how it ended
			return
		case ended:
			return
		}
	}
}

// catchUp sends the events since its last call.
func (w *watcher) catchUp() (told bool, version int64, changed <-chan struct{}, ok bool) {
	events, version, changed, ok := w.state.follow(w.content, w.position)
	for _, change := range events {
		w.tell(change)
	}
	w.position += len(events)
	w.flush()
	return len(events) > 0, version, changed, ok
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
func (w *watcher) tell(change *event) {
	if change.version <= w.after || w.query.namespace != "" && change.after.namespace() != w.query.namespace {
		return
	}
	if w.all() {
		w.emit(change.kind, change.after)
		return
	}
	was := change.before != nil && w.selects(change.before)
	is := change.kind != watch.Deleted && w.selects(change.after)
	switch {
	case is && was:
		w.emit(watch.Modified, change.after)
	case is:
		w.emit(watch.Added, change.after)
	case was && change.kind == watch.Deleted:
		w.emit(watch.Deleted, change.after)
	case was:
		w.emit(watch.Deleted, change.left())
	}
}

// follow returns the events from a position on, and the version that they lead to;
// or, if there are none, a channel that is closed when there are.
func (s *state) follow(c *collection, position int) ([]*event, int64, <-chan struct{}, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	events, ok := c.history.after(position)
	return events, s.version, c.history.changed, ok
}

type waking uint8

const (
	woken waking = iota
	ticked
	vanished
	ended
)

// wait ends when one of the channels speaks, or the watch must.
func (w *watcher) wait(ctx context.Context, changed, gone <-chan struct{}, tick, last <-chan time.Time) waking {
	select {
	case <-changed:
		return woken
	case <-tick:
		return ticked
	case <-last:
		return ticked
	case <-ctx.Done():
		return ended
	case <-w.Server.ctx.Done():
		return ended
	case <-gone:
		return vanished
	}
}

// openWatch says whether a request is one.
func openWatch(r *http.Request) bool {
	text := r.URL.Query().Get("watch")
	yes, err := strconv.ParseBool(text)
	return yes || err != nil && text != ""
}
