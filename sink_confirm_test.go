package tarn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// confirmed is what a sink asks whether its content is of the source, and how often it was asked.
type confirmed struct {
	answers []error
	asked   atomic.Int64
}

func (c *confirmed) confirm(context.Context) error {
	return c.answers[min(int(c.asked.Add(1)), len(c.answers))-1]
}

// A sink that opens late, or is not the one that the copy is loaded from, is asked whether its
// content is of the source. If it is not, its position proves nothing.
func TestSinkThatOpensLateConfirmsTheSource(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		asked   int64
		want    string
	}{
		"the same source":    {[]error{nil}, 1, ""},
		"another source":     {[]error{ErrOtherSource}, 1, "whole +a1 +b2 @2"},
		"not known at first": {[]error{errUnreachable, errUnreachable, ErrOtherSource}, 3, "whole +a1 +b2 @2"},
	} {
		for _, late := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRemote("a", "b")
					sink, asks := newFakeSink(policy("sink")), &confirmed{answers: c.answers}
					sink.has = map[Key]*entry{"z": {name: "z", version: "1"}}
					sink.positions.Reset(At("2"))
					sink.confirm = asks.confirm
					back := time.Now().Add(time.Minute)
					sink.opening = func(context.Context) error {
						if late && time.Now().Before(back) {
							return errUnreachable
						}
						return nil
					}
					life := attached(t, r, loadedSink{fakeSink: newFakeSink(policy("disk"))}, sink)
					time.Sleep(3 * time.Minute)
					if late {
						sink.wantHeard(t, c.want)
					} else { // at the start the copy has nothing to compare it with
						sink.wantHeard(t, "whole +a1 +b2 @2")
					}
					if n := asks.asked.Load(); n != c.asked {
						t.Errorf("the source was asked %d times, want %d", n, c.asked)
					}
					if h := life.Health().Sinks[1]; h.Err != nil || h.Version != "2" {
						t.Errorf("health says %+v", h)
					}
					_ = life.stop()
				})
			})
		}
	}
}

// The content of a sink cannot be loaded. That it is replaced does not keep the sink from
// recording the source that it comes from now.
func TestSinkThatCannotBeLoadedConfirmsTheSource(t *testing.T) {
	for _, answer := range []error{nil, ErrOtherSource} {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote("a", "b")
			asks := &confirmed{answers: []error{answer}}
			disk := loadedSink{fakeSink: newFakeSink(policy("disk")), loading: errors.New("nonsense")}
			disk.has = map[Key]*entry{"z": {name: "z", version: "1"}}
			disk.positions.Reset(At("1"))
			disk.confirm = asks.confirm
			life := attached(t, r, disk)
			settle()
			if n := asks.asked.Load(); n != 1 {
				t.Errorf("the source was asked %d times", n)
			}
			_ = life.stop()
			disk.wantState(t, r)
		})
	}
}
