package tarn

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// quarantine records which objects are bad: the store holds their last good state, or
// nothing, instead of the current state.
//
// Objects whose key could not be read are only counted, from one whole state to the
// next.
type quarantine struct {
	mu      sync.Mutex
	byKey   map[Key]badEntry
	keyless int64
}

// badEntry is a bad object. If taken, the store has it in part: then the same state
// again does not clear it, only another write does.
type badEntry struct {
	BadObject
	taken bool
}

// maxBadListed is how many bad objects Health names; the rest are counted.
const maxBadListed = 100

// put marks an object as bad, and reports whether it is new or has another error. Since
// keeps the time of the first mark.
func (q *quarantine) put(bad BadObject, taken bool, now time.Time) (BadObject, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	bad.Since = now
	if bad.Key == "" {
		q.keyless++
		return bad, true
	}
	before, known := q.byKey[bad.Key]
	if known {
		bad.Since = before.Since
	}
	if q.byKey == nil {
		q.byKey = map[Key]badEntry{}
	}
	kept := bad
	kept.Err = withoutStack(bad.Err)
	q.byKey[bad.Key] = badEntry{kept, taken}
	return bad, !known || before.Err.Error() != kept.Err.Error()
}

// clear removes a key after a good state that is at least as new as the bad one;
// written says that the store wrote that state.
func (q *quarantine) clear(m Meta, written bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.byKey[m.Key]; !m.Version.OlderThan(b.Version) && (written || !b.taken) {
		delete(q.byKey, m.Key)
	}
}

// verdict is the result of a whole state for a bad object.
type verdict uint8

const (
	stillBad verdict = iota
	// asHeld: it equals the state in the store.
	asHeld
	// good: it is deleted, or written again.
	good
)

// settle updates all marks after a whole state was written. keyless is the number of
// its objects without a readable key.
func (q *quarantine) settle(judge func(Key) verdict, keyless int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keyless = int64(keyless)
	for key, b := range q.byKey {
		if v := judge(key); v == good || v == asHeld && !b.taken {
			delete(q.byKey, key)
		}
	}
}

// empty reports whether nothing is marked: the usual case, which spares the hot path a
// lookup.
func (q *quarantine) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byKey) == 0
}

// list returns the first marked objects by key, and the number of all bad objects.
func (q *quarantine) list() (first []BadObject, count int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.byKey {
		first = append(first, b.BadObject)
	}
	slices.SortFunc(first, func(a, b BadObject) int { return cmp.Compare(a.Key, b.Key) })
	return first[:min(len(first), maxBadListed)], len(q.byKey) + int(q.keyless)
}
