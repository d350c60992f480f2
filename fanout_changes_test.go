package tarn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

// The whole fan-out at once: a source that changes, breaks and forgets, and
// subscribers that come and go, each at its own pace. Every subscriber that is
// left, also one that came last, must end with what the source has; and whatever
// happened, no subscriber may receive what the contract forbids (see [audience]).
func TestFanOut(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(testsize.Of(20, 5)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fanOut(t, rand.New(rand.NewPCG(seed, 1)), kinds) })
		})
	}
	for _, kind := range []string{"*", "|", "+", "~", "-", "?", "="} {
		if kinds[kind] < testsize.Of(100, 10) {
			t.Errorf("all seeds together made only %d changes of kind %s", kinds[kind], kind)
		}
	}
}

// fanOut plays one seed and counts what subscribers received, by kind.
func fanOut(t *testing.T, random *rand.Rand, kinds map[string]int) {
	r := newRemote("a", "b", "c")
	var quiet atomic.Bool
	c := newCopyIn(t, r, func(s *plainStore) ReadStore[*entry] {
		if random.IntN(2) == 0 {
			return s
		}
		return &snapshotStore{plainStore: s, walked: runtime.Gosched}
	}, Options[*entry]{
		WatchList:    random.IntN(2) == 0,
		ResyncPeriod: time.Minute,
		ShouldResync: func() bool { return !quiet.Load() },
	})
	crowd := &crowd{copying: c, random: random}
	for range 3 {
		crowd.join()
	}
	c.start()
	for range 3000 {
		step(r, random)
		switch random.IntN(40) {
		case 0:
			crowd.join()
		case 1:
			crowd.leave()
		case 2, 3, 4, 5:
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
	}
	quiet.Store(true)
	r.fail(nil)
	crowd.join()
	v := r.put("last", "")
	if err := c.WaitFor(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	want := r.state()
	if !maps.Equal(c.store.state(), want) {
		t.Fatalf("the store holds %v, the source %v", c.store.state(), want)
	}
	for i, a := range crowd.present {
		if got := a.state(); !maps.Equal(got, want) {
			t.Errorf("subscriber %d of %d ends with %v, want %v", i, len(crowd.present), got, want)
		}
		if !isClosed(a.Synced()) {
			t.Errorf("subscriber %d of %d never synced", i, len(crowd.present))
		}
		if lag := a.Lag(); lag != (Lag{}) {
			t.Errorf("subscriber %d of %d still lags by %+v", i, len(crowd.present), lag)
		}
	}
	if len(c.fanout.followers) != len(crowd.present) {
		t.Errorf("%d followers for %d subscribers", len(c.fanout.followers), len(crowd.present))
	}
	_ = c.stop()
	crowd.running.Wait()
	for i, a := range slices.Concat(crowd.present, crowd.gone) {
		if !isClosed(a.Done()) {
			t.Errorf("subscriber %d is not done after the end", i)
		}
		for _, c := range a.heard {
			kinds[showOne(c)[:1]]++
		}
	}
}

// step lets something happen at the source.
func step(r *remote, random *rand.Rand) {
	name := fmt.Sprint("object ", random.IntN(30))
	_, present := r.state()[Key(name)]
	switch n := random.IntN(1000); {
	case n < 5:
		r.hangUp()
	case n < 10:
		r.fail(Because(ReasonRefused, 0, fmt.Errorf("refused")))
	case n < 15:
		r.compact()
	case n < 60:
		r.fail(nil)
	case n < 80:
		r.bookmark()
	case present && n < 400:
		r.remove(name)
	default:
		r.put(name, "")
	}
}

// crowd is a changing number of subscribers.
type crowd struct {
	*copying
	random  *rand.Rand
	present []*audience
	gone    []*audience
	running sync.WaitGroup
}

func (c *crowd) join() {
	opts := SubscribeOptions{Bound: []int{0, 1, 10}[c.random.IntN(3)], Inline: c.random.IntN(4) == 0}
	if c.random.IntN(2) == 0 {
		opts.Syncs = func() bool { return true }
	}
	pace := time.Duration(c.random.IntN(3)*c.random.IntN(200)) * time.Millisecond
	a := c.subscribe(opts, func(Change[*entry]) { time.Sleep(pace) })
	if opts.Inline {
		c.running.Go(func() { a.Run(c.t.Context()) })
	}
	c.present = append(c.present, a)
}

func (c *crowd) leave() {
	if len(c.present) == 0 {
		return
	}
	i := c.random.IntN(len(c.present))
	a := c.present[i]
	c.present = slices.Delete(c.present, i, i+1)
	a.Close()
	c.gone = append(c.gone, a)
}

// Everything at once, for the race detector: subscribers that join, run and
// leave in goroutines of their own while changes are published and the replica
// is started and stopped.
func TestConcurrentFanOut(t *testing.T) {
	r := newRemote("a", "b", "c")
	c := newCopy(t, r, Options[*entry]{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 40 {
				opts := SubscribeOptions{Inline: (i+j)%3 == 0, Bound: j % 5, Syncs: func() bool { return j%2 == 0 }}
				var heard sync.Map
				s, err := c.Subscribe(func(c Change[*entry]) { heard.Store(c.Key, c.Version) }, opts)
				if err != nil {
					return // the replica has stopped
				}
				if opts.Inline {
					all.Go(func() { s.Run(t.Context()) })
				}
				if j%2 == 0 {
					select {
					case <-s.Synced():
					case <-s.Done():
					}
				}
				_ = s.Lag()
				if j%4 != 3 {
					all.Go(s.Close)
					s.Close()
					<-s.Done()
				}
			}
		})
		all.Go(func() {
			for range c.Changes(t.Context()) {
				if i%2 == 0 {
					break
				}
			}
		})
		all.Go(func() { _ = c.WaitFor(t.Context(), Version(fmt.Sprint(i*10))) })
	}
	c.start()
	for i := range 300 {
		r.put(fmt.Sprint("object ", i%7), "")
		if i%50 == 49 {
			r.hangUp()
		}
	}
	if err := c.WaitFor(t.Context(), "303"); err != nil {
		t.Error(err)
	}
	_ = c.stop()
	all.Wait()
	if n := len(c.fanout.followers); n != 0 {
		t.Errorf("%d followers are left", n)
	}
}
