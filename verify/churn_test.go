package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/sim"
	"github.com/tarnproject/tarn/internal/testsize"
	"github.com/tarnproject/tarn/memory"
)

// churn writes the server at random until it is stopped.
func (l *lake) churn(random *rand.Rand, pause time.Duration) (stop func()) {
	quit := make(chan struct{})
	var done sync.WaitGroup
	exists := map[int]bool{}
	for i := range 40 {
		_, exists[i] = l.store.Get(keyOf(i))
	}
	done.Go(func() {
		for n := 0; ; n++ {
			i := random.IntN(40)
			if exists[i] && random.IntN(3) == 0 {
				l.remove(i)
				exists[i] = false
			} else {
				l.put(i, fmt.Sprint(n))
				exists[i] = true
			}
			select {
			case <-quit:
				return
			case <-time.After(time.Duration(random.Int64N(int64(pause)))):
			}
		}
	})
	return func() { close(quit); done.Wait() }
}

// slowed makes each list take some time.
func slowed(random *rand.Rand, then func(int64, tarn.ListQuery) error) func(int64, tarn.ListQuery) error {
	return func(n int64, q tarn.ListQuery) error {
		time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
		return then(n, q)
	}
}

// TestNoFalseDifferences compares a correct copy again and again while its server
// is written: no way of comparing may find a difference. Then it corrupts an object
// that nobody writes any more, which must be found.
func TestNoFalseDifferences(t *testing.T) {
	anything := func(int64, tarn.ListQuery) error { return nil }
	for name, way := range map[string]struct {
		shape  shape
		meddle func(int64, tarn.ListQuery) error
	}{
		"exact":         {shape{}, anything},
		"without past":  {shape{}, noPast},
		"sections":      {shape{namespaces: []string{"n0", "n1", "n2"}}, anything},
		"short history": {shape{}, nil},
	} {
		for seed := range uint64(testsize.Of(8, 2)) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 7))
					shape := way.shape
					shape.objects = 60
					if way.meddle == nil {
						shape.server.HistorySize = 20
					}
					l := newLake(t, shape)
					l.meddle = slowed(rand.New(rand.NewPCG(seed, 8)), anything)
					if way.meddle != nil {
						l.meddle = slowed(rand.New(rand.NewPCG(seed, 8)), way.meddle)
					}
					stop := l.churn(rand.New(rand.NewPCG(seed, 9)), 100*time.Millisecond)
					for range 5 {
						r, err := Once(t.Context(), l.target, Options{PageSize: 1 + random.Int64N(30)})
						if err != nil && way.meddle == nil {
							continue // the server forgets faster than it is read
						}
						if err != nil || r.Verdict != Equal || r.Digest != r.ServerDigest {
							t.Errorf("%s (%v)\n%v", r, err, r.Differences)
						}
						if r.Exact != (len(shape.namespaces) == 0 && name != "without past") {
							t.Errorf("%s: exact %v", r, r.Exact)
						}
					}
					l.corrupt(keyOf(50), setText("wrong"))
					l.store.Remove(keyOf(51))
					held, _ := l.store.Get(keyOf(52))
					made := held.DeepCopy()
					made.SetName("made-up")
					_ = l.store.Put("n1/made-up", made)
					if r, err := Once(t.Context(), l.target, Options{PageSize: 50}); err == nil || way.meddle != nil {
						l.want(r, Different, 1, 1, 1)
					}
					stop()
				})
			})
		}
	}
}

// TestNoFalseDifferencesOnBadDays does the same with a source that takes no notice
// of Exact, is restarted and compacted, and holds no lists back.
func TestNoFalseDifferencesOnBadDays(t *testing.T) {
	for seed := range uint64(testsize.Of(30, 8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 9))
				server, store := sim.NewServer(), memory.New[*sim.Object]()
				replica, err := tarn.NewReplica[*sim.Object](server, store, tarn.Options[*sim.Object]{OnError: func(context.Context, error) {}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = replica.Run(ctx) }()
				var writing sync.WaitGroup
				writing.Go(func() {
					for ctx.Err() == nil {
						name := fmt.Sprint("o", random.IntN(30))
						switch n := random.IntN(100); {
						case n < 60:
							server.Put(name, false)
						case n < 90:
							server.Delete(name)
						case n < 95:
							server.Compact(random.IntN(20))
						default:
							server.Restart()
						}
						time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
					}
				})
				target := Target[*sim.Object]{Name: "days", Replica: replica, Store: store, Sources: []tarn.Source[*sim.Object]{server}}
				for range 10 {
					r, err := Once(ctx, target, Options{PageSize: 7, Patience: time.Minute})
					if err == nil && r.Verdict == Different {
						t.Errorf("%s\n%v", r, r.Differences)
					}
					time.Sleep(time.Second)
				}
				cancel()
				writing.Wait()
				<-replica.Done()
			})
		})
	}
}
