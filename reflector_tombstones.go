package tarn

// tombstones remembers the latest deletes, so that a replayed event of an object
// that is already gone is not taken for a new one.
//
// It holds a fixed number: a source that replays its history further back than
// that looks like one that went back in time, and is probed for it.
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
		return // a replayed delete, of before the last one
	}
	if !known {
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

// covers says whether a state of key at v is known to be of before its delete.
func (t *tombstones) covers(key Key, v Version) bool {
	gone, ok := t.at[key]
	return ok && v.OlderThan(gone)
}

func (t *tombstones) clear() { *t = tombstones{} }
