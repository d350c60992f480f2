package tarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFailedCommitIsTriedAgain(t *testing.T) {
	for _, every := range []bool{false, true} {
		t.Run(fmt.Sprintf("every state %v", every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRemote("a")
				sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: every})
				life := attached(t, r, sink)
				settle()
				sink.wantHeard(t, "whole +a1 @1")
				var tried []string
				began := time.Now()
				sink.refuse = func(_ context.Context, b Batch[*entry]) error {
					tried = append(tried, fmt.Sprintf("%s %s", time.Since(began).Round(time.Second), showBatch(b)))
					return errUnreachable
				}
				r.put("a", "") // 2
				time.Sleep(1500 * time.Millisecond)
				r.put("a", "") // 3
				r.put("b", "") // 4
				time.Sleep(60 * time.Second)
				synctest.Wait()
				h := life.Health().Sinks[0]
				want := "0s ~a2 @2, 1s ~a2 @2, 3s ~a3 +b4 @4, 7s ~a3 +b4 @4, 15s ~a3 +b4 @4, 31s ~a3 +b4 @4, 1m1s ~a3 +b4 @4"
				pending := 2
				if every {
					want = "0s ~a2 @2, 1s ~a2 @2, 3s ~a2 @2, 7s ~a2 @2, 15s ~a2 @2, 31s ~a2 @2, 1m1s ~a2 @2"
					pending = 3
				}
				if got := strings.Join(tried, ", "); got != want {
					t.Errorf("it was tried at\n  %s\nwant\n  %s", got, want)
				}
				if !errors.Is(h.Err, errUnreachable) || !h.ErrSince.Equal(began) || h.Failures != 7 || h.Pending != pending || h.Lag != time.Since(began) || h.Version != "1" {
					t.Errorf("health says %+v, Lag %s, ErrSince %s after the start", h, h.Lag, h.ErrSince.Sub(began))
				}
				sink.allow()
				settle()
				if every {
					sink.wantHeard(t, "~a2 @2", "~a3 +b4 @4")
				} else {
					sink.wantHeard(t, "~a3 +b4 @4")
				}
				h = life.Health().Sinks[0]
				if h.Err != nil || h.Pending != 0 || h.Lag != 0 || h.Version != "4" || h.Failures != 7 {
					t.Errorf("health afterwards: %+v", h)
				}
				_ = life.stop()
			})
		})
	}
}

// A commit that took effect and was not acknowledged comes again as it is, so that a sink
// can tell by the positions.
func TestLostAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true})
		life := attached(t, r, sink)
		settle()
		sink.heard()
		sink.lost = func(context.Context, Batch[*entry]) error { sink.lost = nil; return errUnreachable }
		r.put("a", "") // 2
		time.Sleep(100 * time.Millisecond)
		r.put("a", "") // 3
		settle()
		sink.wantHeard(t, "~a2 @2", "~a2 @2", "~a3 @3")
		_ = life.stop()
	})
}

// An error that names objects concerns only these.
func TestObjectsThatASinkCannotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := newFakeSink(policy("sink"))
		sink.lost = func(context.Context, Batch[*entry]) error {
			return ObjectErrors{{Key: "a", Err: errors.New("too large")}}
		}
		life := attached(t, r, sink)
		settle()
		r.put("b", "")
		settle()
		sink.wantHeard(t, "whole +a1 @1", "+b2 @2")
		if h := life.Health().Sinks[0]; h.Err != nil || h.Version != "2" {
			t.Errorf("health says %+v", h)
		}
		_ = life.stop()
	})
}

func TestSinkThatLostItsContent(t *testing.T) {
	for _, every := range []bool{false, true} {
		t.Run(fmt.Sprintf("every state %v", every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRemote("a", "b")
				sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: every})
				life := attached(t, r, sink)
				settle()
				sink.heard()
				sink.refuse = func(context.Context, Batch[*entry]) error {
					sink.allow()
					clear(sink.has)
					return ErrSinkEmpty
				}
				r.put("a", "")
				settle()
				sink.wantHeard(t, "whole +a3 +b2 @3 (after 2 to 3 reconciled)")
				sink.wantState(t, r)
				if h := life.Health().Sinks[0]; h.Err != nil || h.Failures != 0 || h.Gaps != 1 {
					t.Errorf("health says %+v", h)
				}
				_ = life.stop()
			})
		})
	}
}

func TestRelistIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true})
		life := attached(t, r, sink)
		settle()
		sink.heard()
		r.fail(Because(ReasonRefused, 0, errUnreachable))
		time.Sleep(time.Second)
		r.put("a", "")
		r.put("a", "")
		r.remove("b")
		r.compact()
		r.fail(nil)
		settle()
		sink.wantHeard(t, "-b ~a4 @5 (after 2 to 5 read anew)")
		_ = life.stop()
	})
}

func TestRewindIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		before := r.state()
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true})
		life := attached(t, r, sink)
		settle()
		r.put("a", "")
		r.put("c", "")
		settle()
		sink.heard()
		r.restore(2, before)
		time.Sleep(10 * time.Minute)
		sink.wantHeard(t, "-c !a1 @2' (after 4 to 2 rewound)")
		sink.wantState(t, r)
		_ = life.stop()
	})
}

func TestSinkGathersForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", Delay: time.Minute, BatchSize: 3})
		life := attached(t, r, sink)
		time.Sleep(30 * time.Second)
		sink.wantHeard(t)
		time.Sleep(31 * time.Second)
		sink.wantHeard(t, "whole +a1 @1")
		for _, name := range []string{"b", "c", "d"} { // the third ends the wait
			r.put(name, "")
			time.Sleep(time.Second)
		}
		sink.wantHeard(t, "+b2 +c3 +d4 @4")
		r.put("e", "")
		time.Sleep(50 * time.Second)
		sink.wantHeard(t)
		sink.mu.Lock()
		flush := sink.flush
		sink.mu.Unlock()
		if err := flush(); err != nil {
			t.Error(err)
		}
		sink.wantHeard(t, "+e5 @5")
		synctest.Wait()
		sink.refuse = func(context.Context, Batch[*entry]) error { return errUnreachable }
		r.put("f", "")
		time.Sleep(time.Second)
		if err := flush(); !errors.Is(err, errUnreachable) {
			t.Errorf("flush returned %v", err)
		}
		synctest.Wait()
		sink.allow()
		_ = life.stop()
		sink.wantHeard(t, "+f6 @6")
		if err := flush(); err == nil {
			t.Error("flush of a sink that was closed returned no error")
		}
		if sink.closes != 1 {
			t.Errorf("it was closed %d times", sink.closes)
		}
	})
}

// A batch that was full does not make the next one come early.
func TestFullBatchDoesNotHurryTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b", "c")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", Delay: time.Minute, BatchSize: 2})
		life := attached(t, r, sink)
		time.Sleep(time.Second)
		sink.wantHeard(t, "whole +a1 +b2 +c3 @3")
		for range 3 { // more than one is full while the commit takes its time
			r.put("a", "")
			r.put("b", "")
		}
		time.Sleep(2 * time.Minute)
		sink.heard()
		r.put("a", "")
		time.Sleep(30 * time.Second)
		sink.wantHeard(t)
		_ = life.stop()
	})
}

// LastContact is the time of the last contact with the source, not with the sink.
func TestSinkIsToldWhenTheSourceWasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := listedSink{newFakeSink(policy("sink"))}
		back := time.Now().Add(time.Hour)
		sink.opening = func(context.Context) error {
			if time.Now().Before(back) {
				return errUnreachable
			}
			return nil
		}
		life := attached(t, r, sink)
		time.Sleep(time.Minute)
		r.fail(errUnreachable)
		heard := life.Health().LastContact
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		sink.wantHeard(t, "whole +a1 @1")
		if !sink.contact.Equal(heard) {
			t.Errorf("the sink was told that the source was heard %s after it was", sink.contact.Sub(heard))
		}
		_ = life.stop()
	})
}

// However many commits hang, the end of Run takes about a second.
func TestHangingCommitsDoNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		var sinks []Sink[*entry]
		var fakes []*fakeSink
		for range 3 {
			s := newFakeSink(policy("sink"))
			s.refuse = func(ctx context.Context, _ Batch[*entry]) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			sinks, fakes = append(sinks, s), append(fakes, s)
		}
		life := attached(t, r, sinks...)
		settle()
		if h := life.Health().Sinks[0]; h.Pending != 1 || h.Lag < 50*time.Second {
			t.Errorf("a commit that hangs is not seen: %+v", h)
		}
		// So does a flush that the sink asked for.
		flushed := make(chan error)
		go func() { flushed <- fakes[0].flush() }()
		settle()
		began := time.Now()
		_ = life.stop()
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the end took %s", took)
		}
		<-flushed
		for _, s := range fakes {
			if s.closes != 1 {
				t.Errorf("a sink was closed %d times", s.closes)
			}
		}
	})
}

// A commit that ends because the replica stops is no failure: it is tried once more.
func TestCommitThatTheEndInterruptsIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newFakeSink(policy("sink"))
		sink.refuse = func(ctx context.Context, _ Batch[*entry]) error {
			<-ctx.Done()
			sink.allow()
			return fmt.Errorf("the connection was closed: %w", ctx.Err())
		}
		life := attached(t, newRemote("a"), sink)
		settle()
		_ = life.stop()
		sink.wantHeard(t, "whole +a1 @1")
		if h := life.Health().Sinks[0]; h.Failures != 0 || h.Err != nil {
			t.Errorf("it counts as a failure: %+v", h)
		}
	})
}

// Changes that arrive while a commit fails or hangs are committed at the end too.
func TestLastCommitsAreOfEverythingThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", EveryState: true})
		life := attached(t, r, sink)
		settle()
		sink.refuse = func(ctx context.Context, _ Batch[*entry]) error {
			<-ctx.Done()
			sink.allow()
			return context.Cause(ctx)
		}
		r.put("a", "") // 2
		settle()
		r.put("a", "") // 3
		r.put("b", "") // 4
		settle()
		_ = life.stop()
		sink.wantHeard(t, "whole +a1 @1", "~a2 @2", "~a3 +b4 @4")
	})
}

// What waits is committed at the end, and then the sink is closed.
func TestLastCommitComesBeforeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "sink", Delay: time.Hour})
		sink.refuse = func(context.Context, Batch[*entry]) error {
			if sink.closes > 0 {
				t.Error("a commit after Close")
			}
			return nil
		}
		life := attached(t, r, sink)
		settle()
		_ = life.stop()
		sink.wantHeard(t, "whole +a1 @1")
		if sink.closes != 1 {
			t.Errorf("it was closed %d times", sink.closes)
		}
	})
}

// Health answers while a store writes.
func TestHealthDoesNotWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a")
		c := newCopy(t, r, Options[*entry]{Sinks: []Sink[*entry]{newFakeSink(policy("sink"))}})
		c.store.refuse = func([]Change[*entry]) error { c.Health(); return nil }
		c.start()
		settle()
		_ = c.stop()
	})
}
