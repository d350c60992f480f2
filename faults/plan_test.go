package faults_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
)

// visit makes the same requests each time: lists, and watches of an hour with
// a write every minute.
func visit(ctx context.Context, plan *faults.Plan, name string, rounds int) {
	s := newServer("a", "b", "c", "d")
	source := faults.Source(s, plan, faults.SourceOptions[*thing]{Name: name, Corrupt: []func(*thing) *thing{
		func(*thing) *thing { return nil }, func(*thing) *thing { return &thing{} },
	}})
	buf := make([]tarn.Event[*thing], 10)
	for i := range rounds {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		_, _ = source.List(ctx, tarn.ListQuery{AtLeast: "1", Limit: 2})
		if stream, err := source.Watch(ctx, tarn.WatchQuery{From: "0", Initial: i%2 == 0, Timeout: time.Hour}); err == nil {
			for n := 0; err == nil && n < 60; n++ {
				time.Sleep(time.Minute)
				s.put(string(rune('a' + n%4)))
				_, err = stream.Next(ctx, buf)
			}
			stream.Close()
		}
		cancel()
	}
}

func TestSameSeedSameDay(t *testing.T) {
	faultsSeen := 0
	for seed := range uint64(20) {
		live := func() (h faults.History) {
			synctest.Test(t, func(t *testing.T) {
				plan := faults.Random(seed)
				visit(t.Context(), plan, "things", 20)
				h = plan.History()
			})
			return h
		}
		first, second := live(), live()
		if diff := cmp.Diff(first.String(), second.String()); diff != "" {
			t.Errorf("seed %d gives two days:\n%s", seed, diff)
		}
		faultsSeen += len(first)
	}
	if faultsSeen < 500 {
		t.Errorf("there were only %d faults", faultsSeen)
	}
}

// Other users of the same plan make no difference, in any order.
func TestNeighboursMakeNoDifference(t *testing.T) {
	alone := map[string][]faults.Place{}
	names := []string{"red", "green", "blue"}
	places := func(h faults.History, name string) (at []faults.Place) {
		for _, f := range h {
			if f.Stream == name {
				at = append(at, f.Place)
			}
		}
		return at
	}
	for _, name := range names {
		synctest.Test(t, func(t *testing.T) {
			plan := faults.Random(7)
			visit(t.Context(), plan, name, 10)
			alone[name] = places(plan.History(), name)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		plan := faults.Random(7)
		var group sync.WaitGroup
		for _, name := range names {
			group.Go(func() { visit(t.Context(), plan, name, 10) })
		}
		group.Wait()
		for _, name := range names {
			if diff := cmp.Diff(alone[name], places(plan.History(), name)); diff != "" {
				t.Errorf("%s alone and with others:\n%s", name, diff)
			}
		}
	})
	if slices.Equal(alone["red"], alone["green"]) {
		t.Error("two names have the same day")
	}
}

// Taking kinds out, or sparing faults, leaves the others where they were.
func TestReducedDay(t *testing.T) {
	connect := func(plan *faults.Plan) map[faults.Place]bool {
		at := map[faults.Place]bool{}
		s := faults.Source(newServer("a"), plan, faults.SourceOptions[*thing]{})
		for range 300 {
			_, _ = s.List(t.Context(), tarn.ListQuery{})
		}
		for _, f := range plan.History() {
			at[f.Place] = true
		}
		return at
	}
	mix := faults.Mix{faults.Refuse: 0.1, faults.Busy: 0.1, faults.BusyFor: 0.1, faults.NoList: 0.1, faults.Bad: 0.1}
	whole := connect(faults.New(3, mix))
	for kind := range mix {
		reduced := connect(faults.New(3, faults.Mix{kind: mix[kind]}))
		for at := range whole {
			if at.Kind == kind && !reduced[at] {
				t.Errorf("%v happens only among others", at)
			}
		}
		if len(reduced) == 0 {
			t.Errorf("%s never happens", kind)
		}
	}
	suppressed := connect(faults.New(3, mix).Suppress(func(at faults.Place) bool { return at.Request%2 == 0 }))
	maps.DeleteFunc(whole, func(at faults.Place, _ bool) bool { return at.Request%2 == 0 })
	if diff := cmp.Diff(whole, suppressed); diff != "" {
		t.Errorf("the faults left over are not the same:\n%s", diff)
	}
}

// A chance is what it says, from one request to the next and from one seed to
// the next.
func TestChances(t *testing.T) {
	const tries = 4000
	count := func(seed func(i int) uint64, calls int) (n int) {
		for i := range tries / calls {
			plan := faults.New(seed(i), faults.Mix{faults.Wipe: 0.1})
			for range calls {
				if _, ok := plan.Rewind("s", 10); ok {
					n++
				}
			}
		}
		return n
	}
	for name, n := range map[string]int{
		"requests": count(func(int) uint64 { return 5 }, tries),
		"seeds":    count(func(i int) uint64 { return uint64(i) }, 1),
	} {
		// 400 are expected; the standard deviation is 19.
		if n < 310 || n > 490 {
			t.Errorf("of %d %s %d are hit, with a chance of a tenth", tries, name, n)
		}
	}
}

func TestBursts(t *testing.T) {
	plan := faults.New(1, faults.Mix{faults.Internal: 0.02}).Within(faults.Limits{Burst: 4})
	s := faults.Source(newServer("a"), plan, faults.SourceOptions[*thing]{})
	lengths := map[int]int{}
	run := 0
	for range 3000 {
		_, err := s.List(t.Context(), tarn.ListQuery{})
		switch {
		case err != nil:
			run++
		case run > 0:
			lengths[run]++
			run = 0
		}
	}
	for length := 1; length <= 4; length++ {
		if lengths[length] < 3 {
			t.Errorf("hardly any bursts of %d: %v", length, lengths)
		}
	}
}

func TestTheDayEnds(t *testing.T) {
	ask := func(plan *faults.Plan) error {
		_, err := faults.Source(newServer("a"), plan, faults.SourceOptions[*thing]{}).List(context.Background(), tarn.ListQuery{})
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		plan := faults.New(1, faults.Mix{faults.Refuse: 1}).Until(time.Now().Add(time.Hour))
		time.Sleep(time.Hour - time.Nanosecond)
		if ask(plan) == nil {
			t.Error("before the end nothing goes wrong")
		}
		time.Sleep(time.Nanosecond)
		if err := ask(plan); err != nil {
			t.Errorf("after the end: %v", err)
		}
		plan = faults.New(1, faults.Mix{faults.Refuse: 1})
		if ask(plan) == nil {
			t.Error("before End nothing goes wrong")
		}
		plan.End()
		plan.End()
		if err := ask(plan); err != nil {
			t.Errorf("after End: %v", err)
		}
	})
}

func TestDays(t *testing.T) {
	present := map[faults.Kind]int{}
	const days = 200
	for seed := range uint64(days) {
		plan := faults.Random(seed)
		for kind, chance := range plan.Mix() {
			if chance <= 0 || chance > 0.5 {
				t.Errorf("seed %d: the chance of %s is %v", seed, kind, chance)
			}
			present[kind]++
		}
	}
	for _, kind := range faults.Kinds() {
		if n := present[kind]; n < days/4 || n > days*3/4 {
			t.Errorf("%s is there on %d of %d days", kind, n, days)
		}
	}
	if len(present) != len(faults.Kinds()) {
		t.Errorf("days have %d kinds, and there are %d", len(present), len(faults.Kinds()))
	}
}

func TestRewind(t *testing.T) {
	always := faults.New(1, faults.Mix{faults.Rewind: 1})
	seen := map[int]bool{}
	for range 100 {
		back, ok := always.Rewind("s", 5)
		if !ok || back < 1 || back > 5 {
			t.Fatalf("of 5 writes %d are taken back, %v", back, ok)
		}
		seen[back] = true
	}
	if len(seen) != 5 {
		t.Errorf("only these numbers of writes were taken back: %v", seen)
	}
	if back, ok := always.Rewind("s", 0); ok || back != 0 {
		t.Errorf("of no writes %d are taken back", back)
	}
	if back, ok := faults.New(1, faults.Mix{faults.Wipe: 1}).Rewind("s", 5); !ok || back != 5 {
		t.Errorf("a wipe takes back %d of 5 writes, %v", back, ok)
	}
	always.End()
	if back, ok := always.Rewind("s", 5); ok || back != 0 {
		t.Errorf("after the day %d writes are taken back", back)
	}
}

func TestHistoryIsReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := faults.New(1, faults.Mix{faults.Refuse: 1})
		s := faults.Source(newServer("a"), plan, faults.SourceOptions[*thing]{Name: "pods"})
		_, _ = s.List(t.Context(), tarn.ListQuery{AtLeast: "0", Limit: 500})
		time.Sleep(90 * time.Second)
		_, _ = s.Watch(t.Context(), tarn.WatchQuery{From: "7"})
		want := `
time   request  of                        fault   detail
0s     pods 1   list at any, 500 at most  refuse
1m30s  pods 2   watch from 7              refuse
`
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), plan.History().String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if got := fmt.Sprint(plan.History().Counts()); got != "map[refuse:2]" {
			t.Errorf("counted %s", got)
		}
	})
}
