package apiserver

import (
	"context"
	"io"
)

// content is a collection of the server's own state, as a [State].
type content struct {
	*state
	*collection
}

var _ State = content{}

// reader serves an endpoint out of the server's own state.
func (s *Server) reader(e *endpoint) *Reader {
	return &Reader{of: e, state: content{s.state, e.content}, options: s.options.reader(), encodings: s.encodings, shared: s.shared}
}

func (c content) Get(_ context.Context, key string, at At) (*Object, error) {
	if err := c.checkReached(at.Version); err != nil {
		return nil, err
	}
	return c.state.find(c.collection, key), nil
}

// checkReached fails for a version that lies in the future.
func (s *state) checkReached(version int64) error {
	if now := s.now(); version > now {
		return tooLarge(version, now)
	}
	return nil
}

func (c content) List(_ context.Context, namespace string, at At) (Listing, error) {
	if err := c.checkReached(at.Version); err != nil {
		return Listing{}, err
	}
	if at.Match != Exact {
		at.Version = 0
	}
	entries, version, ok := c.snapshot(c.collection, namespace, at.Version)
	if !ok {
		return Listing{}, ErrExpired
	}
	return Listing{Objects: entries, Version: version}, nil
}

// snapshot returns the entries of a namespace at a version, 0 for now, and the
// version; false if it has been forgotten.
func (s *state) snapshot(c *collection, namespace string, version int64) ([]*Object, int64, bool) {
	s.age(c)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if version == 0 || version >= s.version {
		return c.span(namespace), s.version, true
	}
	if version < c.history.floor {
		return nil, 0, false
	}
	return c.at(namespace, version), version, true
}

// Watch finds the start of a watch.
func (c content) Watch(_ context.Context, q WatchQuery) (Watch, error) {
	c.age(c.collection)
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &historyWatch{content: c, from: Listing{Version: s.version}, position: c.history.end(), gone: c.gone, wake: q.Wake}
	switch version := q.At.Version; {
	case q.Objects && version > s.version:
		return nil, tooLarge(version, s.version)
	case q.Objects:
		w.from.Objects = c.span(q.Namespace)
	case version > 0 && version <= s.version:
		position, ok := c.history.since(version)
		if !ok {
			return nil, tooOld(version, c.history.floor)
		}
		w.position = position
	}
	c.history.watchers[w.wake] = struct{}{}
	return w, nil
}

// historyWatch is a position in the history of a collection. It has no buffer.
type historyWatch struct {
	content  content
	from     Listing
	position int
	wake     chan<- struct{}
	gone     <-chan struct{}
}

func (w *historyWatch) Objects() Listing {
	from := w.from
	w.from.Objects = nil
	return from
}

func (w *historyWatch) Close() {
	w.content.state.mu.Lock()
	defer w.content.state.mu.Unlock()
	delete(w.content.history.watchers, w.wake)
}

// Next ends the watch if it is too far behind, or if the resource is gone and the
// watch has received its last events.
func (w *historyWatch) Next() ([]*Event, int64, error) {
	s := w.content.state
	s.mu.RLock()
	defer s.mu.RUnlock()
	history := &w.content.history
	events, ok := history.after(w.position)
	if !ok {
		return nil, 0, io.EOF
	}
	if len(events) == 0 {
		select {
		case <-w.gone:
			return nil, 0, io.EOF
		default:
		}
	}
	w.position += len(events)
	return events, s.version, nil
}
