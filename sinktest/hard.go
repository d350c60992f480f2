package sinktest

import (
	"context"
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
)

// hard are the checks of what sinks meet on bad days.
var hard = []check{
	{"the same batch again changes nothing", func(r *rig) {
		// Its acknowledgement was lost: the same process tries again, or another one.
		first := whole(to("2", added("a", "1"), added("b", "2")))
		second := to("9", updated("a", "3"), deleted("b", "4"), added("b", "5"), added("c", "6"), deleted("c", "7"))
		second.Gaps = []tarn.Gap{{From: "2", To: "9", Cause: tarn.GapFolded}}
		r.commit(first)
		r.commit(first)
		r.commit(second)
		r.commit(second)
		want := state{}.after(first).after(second)
		for _, problem := range r.differs(want) {
			r.T.Errorf("%s", problem)
		}
		r.commit(second)
		for _, problem := range r.differs(want) {
			r.T.Errorf("in the next process: %s", problem)
		}
	}},
	{"rewound content is taken under the same version, and under an older one", func(r *rig) {
		again := change(tarn.Update, "a", "5", "other content")
		again.Rewound = true
		older := change(tarn.Update, "b", "2", "older content")
		older.Rewound = true
		back := to("3", older)
		back.Positions[0].Epoch = "later"
		r.commits(
			whole(to("6", added("a", "5"), added("b", "6"))),
			to("6", again),
			back)
	}},
	{"a state older than the position is added", func(r *rig) {
		older := change(tarn.Add, "c", "2", "the last good state")
		older.Rewound = true
		back := to("6", older)
		back.Positions[0].Complete = false
		r.commits(whole(to("6", added("a", "5"), added("b", "6"))), back)
	}},
	{"a repair is committed again after a failure, at the position that was there before", func(r *rig) {
		first := whole(to("6", added("a", "5"), added("b", "6")))
		r.commit(first)
		repaired := change(tarn.Update, "a", "5", "other content")
		repaired.Rewound = true
		repair := to("6", repaired)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.sink.Commit(ctx, repair) // it may heed the context or not
		repair.Again = true
		r.commit(repair)
		for _, problem := range r.differs((state{}).after(first).after(repair)) {
			r.T.Errorf("%s", problem)
		}
	}},
	{"a whole batch may go back", func(r *rig) {
		back := whole(to("2", change(tarn.Add, "a", "5", "other content"), added("b", "2")))
		r.commits(whole(to("6", added("a", "5"), added("b", "6"))), back)
	}},
	{"a commit whose context has ended leaves all or nothing", func(r *rig) {
		before, want := r.beginLarge()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.allOrNothing(ctx, before, want)
	}},
	{"a commit whose context ends in the midst leaves all or nothing", func(r *rig) {
		before, want := r.beginLarge()
		for wait := 20 * time.Microsecond; wait < 200*time.Millisecond; wait *= 3 {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			before = r.allOrNothing(ctx, before, want)
			cancel()
			want = large(before, wait.String())
		}
	}},
	{"the slices of a batch are not kept", func(r *rig) {
		b := whole(to("2", added("a", "1"), added("b", "2")))
		want := state{}.after(b)
		want.positions = []tarn.Position{b.Positions[0]}
		r.commit(b)
		for i := range b.Changes {
			b.Changes[i] = added("overwritten", "9")
		}
		b.Positions[0] = tarn.At("9")
		for _, problem := range r.differs(want) {
			r.T.Errorf("%s", problem)
		}
	}},
}

// large is a batch that changes every key of a state and adds some.
func large(from state, text string) tarn.Batch[Object] {
	v := tarn.Version(text)
	b := to(v)
	for i := range 500 {
		key := tarn.Key(fmt.Sprintf("ns/%05d", i))
		if _, there := from.objects[key]; there && i%3 == 0 {
			b.Changes = append(b.Changes, deleted(key, v))
		} else {
			b.Changes = append(b.Changes, change(tarn.Update, key, v, text))
		}
	}
	return b
}

// beginLarge commits a large state and returns it, and the batch to try next.
func (r *rig) beginLarge() (state, tarn.Batch[Object]) {
	r.T.Helper()
	first := whole(large(state{}, "1"))
	r.commit(first)
	before := state{}.after(first)
	return before, large(before, "2")
}

// allOrNothing commits a batch that may fail, and then for good. It returns the state
// after that.
func (r *rig) allOrNothing(ctx context.Context, before state, b tarn.Batch[Object]) state {
	r.T.Helper()
	err := r.sink.Commit(ctx, b)
	after := before.after(b)
	nothing, all := []string{"it succeeded"}, r.differs(after)
	if err != nil {
		nothing = r.differs(before)
	}
	if len(all) > 0 && len(nothing) > 0 {
		r.T.Errorf("Commit returned %v, and has taken effect neither as a whole nor not at all.\nNot as a whole: %s\nNot nothing: %s", err, all[0], nothing[0])
	}
	r.commit(b)
	for _, problem := range r.differs(after) {
		r.T.Errorf("tried again after %v: %s", err, problem)
	}
	return after
}
