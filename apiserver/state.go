package apiserver

import (
	"errors"
	"sync"
	"sync/atomic"
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

	// derived counts the bytes of encodings that were kept since the last time
	// they were all dropped.
	derived    atomic.Int64
	derivedMax int64
}

// firstVersion represents the writes of a real server before its first client.
const firstVersion = 1000

func newState(options Options) *state {
	return &state{
		version:     firstVersion,
		collections: map[*collection]bool{},
		historySize: options.HistorySize, historyBytes: options.HistoryBytes,
		historyAge: options.HistoryAge,
		derivedMax: options.CacheBytes,
	}
}

// commit replaces before, nil for nothing, by after, nil for nothing. It fails
// with errMoved if before is not what is there. check runs before anything is
// changed, and sees the state as it is then.
//
// It returns the new entry, or the deleted one with the version of the deletion.
func (s *state) commit(c *collection, key string, before *entry, after runtime.Object, check func() error) (*entry, error) {
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
	change := &event{kind: watch.Modified, version: s.version + 1, at: time.Now(), before: before}
	object := after
	var err error
	switch {
	case after == nil:
		change.kind = watch.Deleted
		if object, err = before.object(); err != nil {
			return nil, err
		}
	case before == nil:
		change.kind = watch.Added
	}
	if change.after, err = c.freeze(object, change.version); err != nil {
		return nil, err
	}
	s.version = change.version
	if after == nil {
		c.remove(key)
	} else {
		c.put(change.after)
	}
	c.history.append(change)
	c.history.trim(s.historySize, s.historyBytes, change.at.Add(-s.historyAge))
	return change.after, nil
}

func (s *state) find(c *collection, key string) *entry {
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
	old := len(c.history.events) > 0 && c.history.events[0].at.Before(limit)
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

// keep counts an encoding that an entry is about to keep, and has all dropped
// once they are too much: what is in use is soon made again, and no book has to
// be kept of what was used when.
func (s *state) keep(size int) {
	if s.derived.Add(int64(size)) < s.derivedMax {
		return
	}
	s.derived.Store(0)
	s.drop()
}

func (s *state) drop() {
	s.mu.RLock()
	var entries []*entry
	for c := range s.collections {
		entries = append(entries, c.entries...)
		for _, change := range c.history.events {
			entries = append(entries, change.after)
			if change.before != nil {
				entries = append(entries, change.before)
			}
		}
	}
	s.mu.RUnlock()
	for _, e := range entries {
		e.mu.Lock()
		e.forms = nil
		e.mu.Unlock()
	}
}
