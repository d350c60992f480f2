package sim

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// follower follows a copy's changes, at some pace, and builds its state only from them.
type follower struct {
	name   string
	record *record
	random *rand.Rand
	// pace is the longest time that it takes for a change; stall is when, and for how
	// long, it takes no changes at all.
	pace     time.Duration
	stallAt  time.Time
	stallFor time.Duration
	rewinds  func() int64

	mu  sync.Mutex
	has map[tarn.Key]told
}

// told is the last state of an object that the follower got: the pointer, and the
// version.
type told struct {
	object  any
	version tarn.Version
	uid     string
}

func newFollower(name string, r *record, seed uint64) *follower {
	return &follower{name: name, record: r, random: rand.New(rand.NewPCG(seed, 7)), has: map[tarn.Key]told{}}
}

// state is the content according to the changes that the follower got.
func (f *follower) state() map[tarn.Key]tarn.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[tarn.Key]tarn.Version{}
	for k, v := range f.has {
		out[k] = v.version
	}
	return out
}

// stall is for how long it takes no changes from now on. It stalls once.
func (f *follower) stall() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.stallAt) {
		return 0
	}
	d := f.stallFor
	f.stallFor = 0
	return d
}

// keepsUp reports whether it takes every change at once.
func (f *follower) keepsUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pace == 0 && f.stallFor == 0
}

// take gets each change.
func (f *follower) take(kind tarn.ChangeType, key tarn.Key, old any, now told) {
	if d := f.stall(); d > 0 {
		f.record.note(f.name, "stalls for %s", d)
		time.Sleep(d)
	}
	if f.pace > 0 {
		time.Sleep(time.Duration(f.random.Int64N(int64(f.pace))))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, present := f.has[key]
	f.record.note(f.name, "%s %s@%s", changeNames[kind], key, now.version)
	switch kind {
	case tarn.Add:
		if present {
			f.record.violate(f.name, "order", "add of %s@%s, which it has at %s", key, now.version, before.version)
		}
		f.has[key] = now
	case tarn.Update:
		if !present {
			f.record.violate(f.name, "order", "update of %s to %s, which it does not have", key, now.version)
		} else if before.object != old {
			f.record.violate(f.name, "order", "the old object of %s is not the one it was last given (%s)", key, before.version)
		}
		if f.rewinds() == 0 && before.uid == now.uid && now.version.OlderThan(before.version) {
			f.record.violate(f.name, "no silent time travel", "%s went from %s back to %s", key, before.version, now.version)
		}
		f.has[key] = now
	case tarn.Delete:
		if !present {
			f.record.violate(f.name, "order", "delete of %s, which it does not have", key)
		}
		delete(f.has, key)
	}
}

var changeNames = map[tarn.ChangeType]string{tarn.Add: "add", tarn.Update: "update", tarn.Delete: "delete", tarn.Sync: "sync"}
