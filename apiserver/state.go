package apiserver

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// errMoved says that an object is not what a write was made for.
var errMoved = errors.New("the object has changed in the meantime")

// state is all that the server remembers: collections, and one count of changes
// over all of them, as etcd has it.
//
// One lock guards it. Under it pointers are moved and one object is encoded, so
// that reads, which copy pointers, do not wait for long; what takes time, to
// decode, to patch, to compare, to encode for clients, happens outside, and a
// write that comes too late for that is made again.
type state struct {
	mu           sync.RWMutex
	version      int64
	collections  map[*collection]bool
	historySize  int
	historyBytes int64
	historyAge   time.Duration
}

// firstVersion represents the writes of a real server before its first client.
const firstVersion = 1000

func newState(options Options) *state {
	return &state{
		version:     firstVersion,
		collections: map[*collection]bool{},
		historySize: options.HistorySize, historyBytes: options.HistoryBytes,
		historyAge: options.HistoryAge,
	}
}

// commit replaces before, nil for nothing, by after, nil for nothing. It fails
// with errMoved if before is not what is there. check runs before anything is
// changed, and sees the state as it is then.
//
// It returns the new entry, or the deleted one with the version of the deletion.
func (s *state) commit(c *collection, key string, before *Object, after runtime.Object, check func() error) (*Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.find(key) != before {
		return nil, errMoved
	}
	if check != nil {
		if err := check(); err != nil {
			return nil, err
		}
	}
	change := &Event{Type: watch.Modified, Version: s.version + 1, Heard: time.Now(), Old: before}
	object := after
	var err error
	switch {
	case after == nil:
		change.Type = watch.Deleted
		if object, err = before.object(); err != nil {
			return nil, err
		}
	case before == nil:
		change.Type = watch.Added
	}
	if change.Object, err = c.freeze(object, change.Version); err != nil {
		return nil, err
	}
	s.version = change.Version
	if after == nil {
		c.remove(key)
	} else {
		c.put(change.Object)
	}
	c.history.append(change)
	c.history.trim(s.historySize, s.historyBytes, change.Heard.Add(-s.historyAge))
	return change.Object, nil
}

func (s *state) find(c *collection, key string) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return c.find(key)
}

// now returns the version of the newest change.
func (s *state) now() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// age forgets events that have become too old since the last change. Requests for
// the past call it.
func (s *state) age(c *collection) {
	limit := time.Now().Add(-s.historyAge)
	s.mu.RLock()
	old := len(c.history.events) > 0 && c.history.events[0].Heard.Before(limit)
	s.mu.RUnlock()
	if !old {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.history.trim(s.historySize, s.historyBytes, limit)
}

// compact forgets what happened up to a version.
func (s *state) compact(version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.collections {
		c.history.compact(min(version, s.version))
	}
}
