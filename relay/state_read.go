package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn/apiserver"
)

// errUpstream says that a request is for the origin to answer.
var errUpstream = errors.New("the request is for the origin to answer")

// versionWait is how long a request waits for a version that the copy has not reached,
// as with the real server.
const versionWait = 3 * time.Second

// Get reads one object. Without a version the origin is to be asked: a client that reads
// back what it has just written does so.
func (s *state) Get(ctx context.Context, key string, at apiserver.At) (*apiserver.Object, error) {
	if at.Match == apiserver.Latest {
		return nil, errUpstream
	}
	if err := s.reach(ctx, at.Version); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.content.get(key), nil
}

// List reads a state of the copy.
func (s *state) List(ctx context.Context, namespace string, at apiserver.At) (apiserver.Listing, error) {
	if err := s.ready(ctx, at, false); err != nil {
		return apiserver.Listing{}, err
	}
	listing, err := s.listing(namespace, at)
	if errors.Is(err, apiserver.ErrExpired) {
		return s.olderListing(ctx, namespace, at.Version)
	}
	return listing, err
}

// listing reads a state that is in memory.
func (s *state) listing(namespace string, at apiserver.At) (apiserver.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Match != apiserver.Exact || at.Version == s.version {
		return s.now(namespace), nil
	}
	place, ok := s.log.since(at.Version)
	if !ok {
		return apiserver.Listing{}, apiserver.ErrExpired
	}
	objects := s.before(place)
	return apiserver.Listing{Objects: within(objects, namespace), Version: at.Version}, nil
}

// now is the content. It is shared with the reader, until the next write.
func (s *state) now(namespace string) apiserver.Listing {
	s.content.shared = true
	return apiserver.Listing{Objects: s.content.span(namespace), Version: s.version}
}

// before is the content before the events from a place on. The lock is held at the call and at
// the return, and released while the content is put together from the events and the present
// content.
func (s *state) before(place int) []*apiserver.Object {
	objects := s.now("").Objects
	events, _ := s.log.after(place) // the caller has checked the place
	s.mu.Unlock()
	defer s.mu.Lock()
	return with(objects, undo(events))
}

// noGaps marks the context of a watch that a gap ends with 410, as the origin would. It is
// for other relays. Otherwise their logs would show the events across a gap as complete, and
// a client that begins in the gap would keep objects for ever that neither relay has seen.
type noGaps struct{}

// Watch opens a watch, which is a place in the log.
func (s *state) Watch(ctx context.Context, q apiserver.WatchQuery) (apiserver.Watch, error) {
	at := q.At
	if !q.Objects {
		at.Version = 0 // a version that was not reached is waited for while the watch is open
	}
	if err := s.ready(ctx, at, true); err != nil {
		return nil, err
	}
	var older int
	var onDisk bool
	var rewinds int
	if !q.Objects {
		older, rewinds, onDisk = s.older(q.At.Version)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &place{
		state: s, topics: topicsOf(q.Selection), rewinds: s.rewinds, after: q.At.Version,
		exact: ctx.Value(noGaps{}) != nil, wake: q.Wake,
	}
	p.pending.Store(none)
	p.from.Version = s.version
	switch {
	case q.Objects:
		p.from = s.now(q.Namespace)
	case q.At.Version > 0 && q.At.Version < s.version:
		from, ok := s.log.since(q.At.Version)
		if onDisk && rewinds == s.rewinds {
			from, ok = older, true
		}
		if !ok {
			return nil, apiserver.TooOld(q.At.Version, s.log.floor)
		}
		if from < s.log.end() {
			p.notify(from)
		}
	}
	s.watchers.add(p)
	return p, nil
}

// ready waits until the copy can answer.
func (s *state) ready(ctx context.Context, at apiserver.At, watch bool) error {
	if err := s.reach(ctx, at.Version); err != nil || at.Match != apiserver.Latest {
		return err
	}
	return s.latest(ctx, s, watch)
}

// reach waits until the copy is synced and has a version. A client may have one from the
// origin which counts changes of other resources. The copy would learn of it only by the
// next bookmark, so the origin is asked for one.
func (s *state) reach(ctx context.Context, version int64) error {
	began := time.Now()
	synced, current := s.await(ctx, version, min(latestWait, s.maxWait))
	if synced && current < version && s.prove != nil {
		proving, cancel := context.WithDeadline(ctx, began.Add(s.maxWait))
		s.prove(proving, version)
		cancel()
	}
	if !synced || current < version {
		synced, current = s.await(ctx, version, time.Until(began.Add(s.maxWait)))
	}
	switch {
	case synced && current >= version:
		return nil
	case !synced:
		return apierrors.NewTooManyRequests(fmt.Sprintf("the relay is still reading %s from the origin", s.name), 1)
	}
	return apiserver.TooLarge(version, current)
}

// await waits for a version for some time, and returns the one that was reached.
func (s *state) await(ctx context.Context, version int64, maxWait time.Duration) (synced bool, current int64) {
	var deadline <-chan time.Time
	for {
		synced, current, moved := s.progress(version)
		if moved == nil {
			return synced, current
		}
		if deadline == nil {
			timer := time.NewTimer(maxWait)
			defer timer.Stop()
			deadline = timer.C
		}
		select {
		case <-moved:
		case <-deadline:
			return synced, current
		case <-ctx.Done():
			return synced, current
		}
	}
}

// reached says whether the copy has a version, and returns what is closed when it has moved
// if it has not.
func (s *state) reached(version int64) (bool, <-chan struct{}) {
	_, _, moved := s.progress(version)
	return moved == nil, moved
}

// progress also returns the version that the copy has.
func (s *state) progress(version int64) (synced bool, current int64, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.synced && s.version >= version {
		return true, s.version, nil
	}
	if s.moved == nil {
		s.moved = make(chan struct{})
	}
	return s.synced, s.version, s.moved
}
