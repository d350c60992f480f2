package faults_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
	"github.com/tarnproject/tarn/memory"
)

// After these faults the truth about an object is known only when its source sends
// it again.
var (
	corrupting = []faults.Kind{faults.Undecodable, faults.Bad, faults.Corrupt, faults.Oversize}
	rewinding  = []faults.Kind{faults.Rewind, faults.Wipe}
)

// A replica behind a bad day equals its source when the day has ended.
func TestReplicaConverges(t *testing.T) {
	eachDay(t, func(t *testing.T, seed uint64) {
		converge(t, without(seed, corrupting, rewinding), func(*server) {})
	})
}

// The same holds with corrupted objects, or a server that went back in time, once
// the source has sent each object again.
//
// Not both on one day: an object that is corrupted in the list after a rewind keeps
// its last good state, and that is newer than anything the source can send.
func TestReplicaConvergesAfterTheLastWrite(t *testing.T) {
	eachDay(t, func(t *testing.T, seed uint64) {
		unwanted := corrupting
		if seed%2 == 0 {
			unwanted = rewinding
		}
		converge(t, without(seed, unwanted), func(s *server) {
			for i := range names {
				name := nameOf(i)
				_, kept := s.state()[tarn.Key(name)]
				s.put(name)
				if !kept {
					s.remove(name)
				}
			}
		})
	})
}

func eachDay(t *testing.T, live func(t *testing.T, seed uint64)) {
	days := uint64(300)
	if testing.Short() {
		days = 30
	}
	for seed := range days {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { live(t, seed) })
		})
	}
}

// without is a day that lacks some kinds of faults.
func without(seed uint64, unwanted ...[]faults.Kind) *faults.Plan {
	mix := faults.Random(seed).Mix()
	for _, kind := range slices.Concat(unwanted...) {
		delete(mix, kind)
	}
	return faults.New(seed, mix)
}

const names = 12

func nameOf(i int) string { return fmt.Sprintf("o%02d", i) }

func converge(t *testing.T, plan *faults.Plan, lastWrite func(*server)) {
	const day = 2 * time.Hour
	plan.Until(time.Now().Add(day))
	g := rand.New(rand.NewPCG(plan.Seed(), 1))
	s := newServer()
	for i := range names {
		s.put(nameOf(i))
	}
	source := faults.Source(s, plan, faults.SourceOptions[*thing]{
		Name: "things",
		Corrupt: []func(*thing) *thing{
			func(*thing) *thing { return nil },
			func(*thing) *thing { return &thing{} },
		},
		Oversize: func(o *thing) *thing { large := *o; return &large },
	})
	replica, err := tarn.NewReplica(source, memory.New[*thing](), tarn.Options[*thing]{
		WatchList: g.IntN(2) == 0,
		PageSize:  func() int64 { return int64(plan.Seed() % 3 * 5) },
		OnError:   func(context.Context, error) {},
		OnBad:     func(context.Context, tarn.BadObject) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	// A first list without a version looks like a source without versions, and with
	// such a source silence cannot be distinguished from loss.
	plan.Suppress(func(at faults.Place) bool { return at.Kind == faults.NoVersion && !replica.Health().Synced })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- replica.Run(ctx) }()
	for end := time.Now().Add(day); time.Now().Before(end); {
		time.Sleep(time.Duration(g.Int64N(int64(2 * time.Minute))))
		switch name := nameOf(g.IntN(names)); {
		case g.IntN(20) == 0:
			s.compact()
		case g.IntN(4) == 0:
			s.remove(name)
		default:
			s.put(name)
		}
		if back, ok := plan.Rewind("things", s.now()); ok {
			s.rewind(back)
		}
	}
	const calm = 30 * time.Minute
	// A server that went back must not pass the old version before a client
	// notices: no client could see it.
	time.Sleep(calm)
	lastWrite(s)
	time.Sleep(calm)
	synctest.Wait()
	if want, got := s.state(), maps.Collect(replica.All()); !maps.Equal(want, got) {
		t.Errorf("the source has %v\nthe replica %v at %s\n%s\n%s", want, got, replica.Version(), replica.Health(), plan.History())
	}
	cancel()
	<-done
	if s.open != 0 {
		t.Errorf("%d streams were left open", s.open)
	}
}
