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
// Objects whose key could not even be read are only counted, from one whole state
// to the next.
type quarantine struct {
	mu      sync.Mutex
	byKey   map[Key]inmate
	keyless int64
}

// inmate is a bad object. One that the store has taken, but not in full, is not
// redeemed by being seen again unchanged.
type inmate struct {
	BadObject
	taken bool
}

// maxBadListed is how many bad objects Health names; the rest are counted.
const maxBadListed = 100

// put marks an object as bad, from now if it was not before, and says whether
// that is news.
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
		q.byKey = map[Key]inmate{}
	}
	kept := bad
	kept.Err = withoutStack(bad.Err)
	q.byKey[bad.Key] = inmate{kept, taken}
	return bad, !known || before.Err.Error() != kept.Err.Error()
}

// redeem takes a key out of which a good state was told that is not older than the
// bad one; written says that the store took it anew.
func (q *quarantine) redeem(m Meta, written bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.byKey[m.Key]; !m.Version.OlderThan(b.Version) && (written || !b.taken) {
		delete(q.byKey, m.Key)
	}
}

// verdict is what a whole state says of a bad object.
type verdict uint8

const (
	stillBad verdict = iota
	// asHeld: it is as the store has it.
	asHeld
	// good: it is gone, or taken anew.
	good
)

// settle goes through all marks after a whole state was taken, in which keyless
// objects could not be named.
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

// empty says whether nothing is marked, which is the usual case and lets the
// hot path pass without a lookup.
func (q *quarantine) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byKey) == 0
}

// list returns the first marked objects by key, and how many bad ones there are.
func (q *quarantine) list() (first []BadObject, count int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.byKey {
		first = append(first, b.BadObject)
	}
	slices.SortFunc(first, func(a, b BadObject) int { return cmp.Compare(a.Key, b.Key) })
	return first[:min(len(first), maxBadListed)], len(q.byKey) + int(q.keyless)
}
