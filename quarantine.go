package tarn

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// quarantine remembers which objects are bad: what the store holds for them, if
// anything, is the last good state and not the present one.
//
// Objects whose key could not even be read are only counted: nothing would ever
// take them out again, so holding each would be a leak.
type quarantine struct {
	mu      sync.Mutex
	byKey   map[Key]BadObject
	keyless int64
}

// put marks an object as bad, from now if it was not before.
func (q *quarantine) put(key Key, err error, now time.Time) BadObject {
	q.mu.Lock()
	defer q.mu.Unlock()
	bad := BadObject{Key: key, Err: err, Since: now}
	if key == "" {
		q.keyless++
		return bad
	}
	if before, ok := q.byKey[key]; ok {
		bad.Since = before.Since
	}
	if q.byKey == nil {
		q.byKey = map[Key]BadObject{}
	}
	q.byKey[key] = bad
	return bad
}

// clear takes a key out: a good state has come, or the object is gone.
func (q *quarantine) clear(key Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.byKey, key)
}

// empty says whether nothing is marked, which is the usual case and lets the
// hot path pass without a lookup.
func (q *quarantine) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byKey) == 0
}

// list returns the marked objects by key, and how many had none.
func (q *quarantine) list() ([]BadObject, int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]BadObject, 0, len(q.byKey))
	for _, b := range q.byKey {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b BadObject) int { return cmp.Compare(a.Key, b.Key) })
	return all, q.keyless
}
