package tarn

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// quarantine records which objects are bad: the store holds their last good state, or
// nothing, instead of the current state.
//
// Objects whose key could not be read are only counted, from one whole state to the
// next.
//
// Every object may be bad, for example if an index function fails for all. So what each
// write asks for is counted, and what Health lists is kept from one call to the next:
// both cost the same for one bad object and for a million. Only after one of the listed
// objects is good again does the next Health walk all of them.
type quarantine struct {
	mu    sync.Mutex
	byKey map[Key]badEntry
	// absent counts the entries that are not taken.
	absent  int
	keyless int64
	// first has the bad objects with the lowest keys, in order, at most maxBadListed;
	// nil if it must be made again.
	first []BadObject
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
	// Both may be pieces of the text of an object.
	kept.Key = Key(strings.Clone(string(bad.Key)))
	kept.Version = Version(strings.Clone(string(bad.Version)))
	q.set(badEntry{kept, taken})
	return bad, !known || before.Err.Error() != kept.Err.Error()
}

// clear removes a key after a good state that is at least as new as the bad one;
// written says that the store wrote that state.
func (q *quarantine) clear(m Meta, written bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.byKey[m.Key]; !m.Version.OlderThan(b.Version) && (written || !b.taken) {
		q.remove(m.Key)
	}
}

// set adds an entry, or replaces the one of the same key.
func (q *quarantine) set(b badEntry) {
	if before, known := q.byKey[b.Key]; known && !before.taken {
		q.absent--
	}
	if !b.taken {
		q.absent++
	}
	q.byKey[b.Key] = b
	if q.first == nil {
		return
	}
	i, listed := slices.BinarySearchFunc(q.first, b.Key, byKey)
	switch {
	case listed:
		q.first[i] = b.BadObject
	case i < maxBadListed:
		q.first = slices.Insert(q.first, i, b.BadObject)
		q.first = q.first[:min(len(q.first), maxBadListed)]
	}
}

// remove removes the entry of a key, if there is one.
func (q *quarantine) remove(key Key) {
	if b, known := q.byKey[key]; known && !b.taken {
		q.absent--
	}
	delete(q.byKey, key)
	if _, listed := slices.BinarySearchFunc(q.first, key, byKey); listed {
		q.first = nil
	}
}

func byKey(b BadObject, key Key) int { return cmp.Compare(b.Key, key) }

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
			q.remove(key)
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

// incomplete reports whether the store lacks the current state of an object. An object
// that the store took in part does not count: a list would not change that.
func (q *quarantine) incomplete() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.keyless > 0 || q.absent > 0
}

// list returns the first marked objects by key, and the number of all bad objects.
func (q *quarantine) list() (first []BadObject, count int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == nil && len(q.byKey) > 0 {
		q.first = q.lowest()
	}
	return slices.Clone(q.first), len(q.byKey) + int(q.keyless)
}

// lowest returns the entries with the lowest keys. It holds at most twice as many as it
// returns.
func (q *quarantine) lowest() []BadObject {
	low := make([]BadObject, 0, 2*maxBadListed)
	shrink := func() {
		slices.SortFunc(low, func(a, b BadObject) int { return cmp.Compare(a.Key, b.Key) })
		low = low[:min(len(low), maxBadListed)]
	}
	var bound Key
	for key, b := range q.byKey {
		if bound != "" && key > bound {
			continue
		}
		if low = append(low, b.BadObject); len(low) == cap(low) {
			shrink()
			bound = low[len(low)-1].Key
		}
	}
	shrink()
	return low
}
