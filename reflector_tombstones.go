package tarn

import "strings"

// tombstones records the latest deletes, so that a replayed event of a deleted object
// does not create it again.
//
// It holds a fixed number. A source that replays its history further back looks like
// one that went back in time, and is probed.
type tombstones struct {
	at   map[Key]Version
	ring []Key
	next int
}

const maxTombstones = 4096

func (t *tombstones) put(key Key, v Version) {
	if t.at == nil {
		t.at = map[Key]Version{}
	}
	last, known := t.at[key]
	if known && v.OlderThan(last) {
		return // a replay of an earlier delete
	}
	// Both may be pieces of the text of the deleted object.
	v = Version(strings.Clone(string(v)))
	if !known {
		key = Key(strings.Clone(string(key)))
		if len(t.ring) < maxTombstones {
			t.ring = append(t.ring, key)
		} else {
			delete(t.at, t.ring[t.next])
			t.ring[t.next] = key
			t.next = (t.next + 1) % maxTombstones
		}
	}
	t.at[key] = v
}

// covers reports whether a state of key at v is older than its delete.
func (t *tombstones) covers(key Key, v Version) bool {
	gone, ok := t.at[key]
	return ok && v.OlderThan(gone)
}

func (t *tombstones) clear() { *t = tombstones{} }
