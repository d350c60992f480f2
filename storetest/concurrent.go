package storetest

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// concurrent are the checks in which somebody reads while the store is written.
var concurrent = []check{
	{"a walk shows one state although a batch is applied meanwhile", func(r *rig) {
		before, after := numbered(40, 1), numbered(60, 2)
		delete(after, "ns/00000")
		r.walkDuring(before, after, func() error { return r.store.Apply(before.to(after), tarn.At("2")) })
	}},
	{"a walk shows one state although all is replaced meanwhile", func(r *rig) {
		before, after := numbered(40, 1), numbered(20, 2)
		r.walkDuring(before, after, func() error { return r.store.Replace(after.items(), tarn.At("2")) })
	}},
	{"readers see each apply whole, with its version", func(r *rig) {
		r.readDuring(func(last, next state, v tarn.Version) error { return r.store.Apply(last.to(next), tarn.At(v)) })
	}},
	{"readers see each replace whole, with its version", func(r *rig) {
		r.readDuring(func(_, next state, v tarn.Version) error { return r.store.Replace(next.items(), tarn.At(v)) })
	}},
}

// walkDuring writes after a walk has begun, and checks what the walk yields then.
// Another goroutine writes, so that a store that blocks its writer until the walk
// ends is reported, and does not hang.
func (r *rig) walkDuring(before, after state, write func() error) {
	r.T.Helper()
	r.replace(before, "1")
	written := make(chan error, 1)
	seen := state{}
	for key, o := range r.store.All() {
		if len(seen) == 0 {
			go func() { written <- write() }()
			select {
			case err := <-written:
				if err != nil {
					r.errorf("the write failed: %v", err)
				}
			case <-time.After(r.patience):
				r.errorf("the write did not end within %v: a walk must not hold writers up", r.patience)
				return
			}
		}
		seen[key] = o.Generation
	}
	if diff := before.differs(seen); diff != "" {
		r.errorf("the walk did not stay with the state it began with:\n%s", diff)
	}
	r.expect(after, "2")
}

const (
	rounds  = 150
	width   = 12
	readers = 4
)

// readDuring writes a series of states and lets readers look for anything that is
// in none of them. In state n every object has the generation n, and n determines
// the number of objects and the version.
func (r *rig) readDuring(write func(last, next state, v tarn.Version) error) {
	r.T.Helper()
	row := func(n int) state { return numbered(width+n%3, n) }
	r.replace(row(1), "1")

	var once sync.Once // thousands of looks may all find the same
	fail := func(format string, args ...any) { once.Do(func() { r.errorf(format, args...) }) }
	done := make(chan struct{})
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for !r.failed.Load() {
				r.look(row, fail)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for n := 2; n <= rounds && !r.failed.Load(); n++ {
		if err := write(row(n-1), row(n), tarn.Version(strconv.Itoa(n))); err != nil {
			fail("writing state %d failed: %v", n, err)
		}
	}
	close(done)
	reading.Wait()
	if !r.failed.Load() {
		r.expect(row(rounds), tarn.Version(strconv.Itoa(rounds)))
	}
}

// look reads once in every way. Between two looks at the version, the content
// can only be of a state between the two.
func (r *rig) look(row func(int) state, fail func(string, ...any)) {
	within := func(what string, read func() (generation int, ok bool)) {
		before := r.at(fail)
		generation, ok := read()
		if after := r.at(fail); ok && (generation < before || generation > after) {
			fail("%s showed state %d, but the version was %d before and %d after: content and version must change together",
				what, generation, before, after)
		}
	}
	within("All", func() (int, bool) {
		seen, generation := state{}, 0
		for key, o := range r.store.All() {
			seen[key], generation = o.Generation, o.Generation
		}
		if diff := row(generation).differs(seen); diff != "" {
			fail("All showed a mix of states; one of them is %d, from which this differs:\n%s", generation, diff)
			return 0, false
		}
		return generation, true
	})
	within("Get", func() (int, bool) {
		key := tarn.Key(fmt.Sprintf("ns/%05d", width-1))
		o, ok := r.store.Get(key)
		if !ok {
			fail("Get(%q) found nothing, but every state has it", key)
		}
		return o.Generation, ok
	})
	before := r.at(fail)
	n := r.store.Len()
	after := r.at(fail)
	possible := false
	for state := before; state <= after; state++ {
		possible = possible || n == len(row(state))
	}
	if !possible {
		fail("Len was %d, which it was in no state from version %d to %d", n, before, after)
	}
}

// at reads the version as the number that the check wrote.
func (r *rig) at(fail func(string, ...any)) int {
	v := r.store.Version()
	n, err := strconv.Atoi(string(v))
	if err != nil {
		fail("Version is %q, which was never written", v)
	}
	return n
}
