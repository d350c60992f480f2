package verify

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// roll runs a rolling comparison for the length of the test, and gives its rounds.
func (l *lake) roll(o RollingOptions) (*Rolling[object], <-chan Round) {
	l.t.Helper()
	rounds := make(chan Round, 100)
	o.OnRound = func(r Round) { rounds <- r }
	rolling, err := NewRolling(l.target, o)
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error)
	go func() { done <- rolling.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, tarn.ErrStopped) {
			l.t.Error(err)
		}
	})
	return rolling, rounds
}

// A round takes the period, and reads each page once.
func TestRollingIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 95, server: apiserver.Options{HistoryAge: 5 * time.Minute}})
		var asked []time.Time
		l.meddle = func(int64, tarn.ListQuery) error {
			asked = append(asked, time.Now())
			return nil
		}
		rolling, rounds := l.roll(RollingOptions{Options: Options{PageSize: 10}, Period: 10 * time.Minute})
		stop := l.churn(rand.New(rand.NewPCG(1, 1)), 10*time.Second)
		first := <-rounds
		for number := range 6 {
			r := <-rounds
			if r.Err != nil || r.Result.Verdict != Equal || !r.Result.Exact || r.Result.Requests > 11 || r.Number != number+2 {
				t.Errorf("%+v", r)
			}
			if between := r.Began.Sub(first.Began); between != 10*time.Minute {
				t.Errorf("a round took %s", between)
			}
			first = r
		}
		stop()
		if n := len(asked); n > 7*11 || n < 7*8 {
			t.Errorf("%d requests in seven rounds", n)
		}
		for i := range asked[1:] {
			if pause := asked[i+1].Sub(asked[i]); pause < 15*time.Second {
				t.Errorf("pages %d and %d were asked for within %s", i, i+1, pause)
			}
		}
		if s := rolling.Status(); s.Rounds != 7 || s.Found != 0 || s.Failed != 0 || s.Repairs != 0 || s.Last == nil || s.Last.Number != 7 {
			t.Errorf("%+v", s)
		}
		if n := l.target.Replica.Health().Lists[recheckCause]; n != 0 {
			t.Errorf("%d rechecks of a copy that is right", n)
		}
	})
}

// A difference is reported and repaired, subscribers included.
func TestRollingRepairs(t *testing.T) {
	for name, namespaces := range map[string][]string{"whole": nil, "sections": {"n0", "n1", "n2"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLake(t, shape{objects: 60, namespaces: namespaces})
				rolling, rounds := l.roll(RollingOptions{Options: Options{PageSize: 10}})
				stop := l.churn(rand.New(rand.NewPCG(2, 1)), 20*time.Second)
				if r := <-rounds; r.Result.Verdict != Equal {
					t.Errorf("%s", r)
				}
				l.corrupt(keyOf(50), setText("wrong"))
				l.store.Remove(keyOf(51))
				held, _ := l.store.Get(keyOf(52))
				made := held.DeepCopy()
				made.SetName("made-up")
				_ = l.store.Put("n1/made-up", made)
				r := <-rounds
				l.want(r.Result, Different, 1, 1, 1)
				if r.Err != nil || !r.Repaired() || !strings.HasSuffix(r.String(), "; read anew, and equal since") {
					t.Errorf("%s", r)
				}
				if took := time.Since(r.Began); took > 8*time.Minute {
					t.Errorf("the repair came after %s", took)
				}
				if again := <-rounds; again.Result.Verdict != Equal || again.After != nil {
					t.Errorf("%s", again)
				}
				stop()
				if s := rolling.Status(); s.Found != 3 || s.Repairs != 1 {
					t.Errorf("%+v", s)
				}
				if h := l.target.Replica.Health(); h.Lists[recheckCause] != max(1, int64(len(namespaces))) || h.Err != nil {
					t.Errorf("lists: %v", h.Lists)
				}
			})
		})
	}
}

// A difference that was overwritten is reported, and not repaired.
func TestRollingFindsWhatPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 30})
		l.corrupt(keyOf(5), setText("wrong"))
		l.meddle = func(n int64, q tarn.ListQuery) error {
			if n == 2 {
				l.put(5, "right")
			}
			return nil
		}
		_, rounds := l.roll(RollingOptions{Options: Options{PageSize: 10}})
		r := <-rounds
		if r.Result.Verdict != Equal || r.Passed != 1 || r.After != nil || !strings.Contains(r.String(), "1 objects were different") {
			t.Errorf("%s", r)
		}
	})
}

// What a recheck cannot put right costs one in each period, and no more.
func TestRollingDoesNotInsist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 30})
		l.target.Transform = func(o object) (object, error) { // what the copy was not made with
			setText("never so")(o)
			return o, nil
		}
		_, rounds := l.roll(RollingOptions{})
		for n := range int64(5) {
			r := <-rounds
			if r.Result.Verdict != Different || r.Repaired() || r.After == nil || !strings.Contains(r.String(), "still not equal") {
				t.Errorf("%s", r)
			}
			if lists := l.target.Replica.Health().Lists[recheckCause]; lists != n+1 {
				t.Errorf("%d rechecks in %d rounds", lists, n+1)
			}
		}
	})
}

// A server that forgets soon is read faster, until it is slow enough again.
func TestRollingHurriesWhereVersionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 95, server: apiserver.Options{HistoryAge: 30 * time.Second}})
		rolling, rounds := l.roll(RollingOptions{Options: Options{PageSize: 10}})
		stop := l.churn(rand.New(rand.NewPCG(3, 1)), 2*time.Second)
		for range 8 {
			if r := <-rounds; r.Err != nil || r.Result.Verdict != Equal || r.Result.Requests > 40 {
				t.Errorf("%s: %d requests", r, r.Result.Requests)
			}
		}
		stop()
		if rolling.Status().Failed != 0 {
			t.Errorf("%+v", rolling.Status())
		}
	})
}

// A server that is unreachable is tried again in the next round.
func TestRollingFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 30})
		trouble := errors.New("trouble")
		l.meddle = func(n int64, _ tarn.ListQuery) error {
			if n < 5 {
				return trouble
			}
			return nil
		}
		rolling, rounds := l.roll(RollingOptions{})
		if r := <-rounds; !errors.Is(r.Err, trouble) || !strings.Contains(r.String(), "trouble") {
			t.Errorf("%s", r)
		}
		<-rounds
		if r := <-rounds; r.Err != nil || r.Result.Verdict != Equal {
			t.Errorf("%s", r)
		}
		if s := rolling.Status(); s.Failed != 2 || s.Rounds != 3 {
			t.Errorf("%+v", s)
		}
	})
	if _, err := NewRolling(Target[object]{Name: "half"}, RollingOptions{}); err == nil {
		t.Error("half a target was taken")
	}
}

// It ends with its replica.
func TestRollingStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 3})
		replica, err := tarn.NewReplica(l.target.Sources[0], l.store, tarn.Options[object]{})
		if err != nil {
			t.Fatal(err)
		}
		l.target.Replica = replica
		rolling, err := NewRolling(l.target, RollingOptions{OnRound: func(Round) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = replica.Run(ctx) }()
		done := make(chan error)
		go func() { done <- rolling.Run(t.Context()) }()
		time.Sleep(time.Hour)
		cancel()
		if err := <-done; !errors.Is(err, tarn.ErrStopped) {
			t.Error(err)
		}
		<-replica.Done()
	})
}

// Without a function, what went wrong is logged, and the rest is for debugging.
func TestRollingLogs(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	equal, different := Result{Verdict: Equal}, Result{Verdict: Different, Missing: 1}
	for _, test := range []struct {
		round Round
		want  string
	}{
		{Round{Result: equal}, ""},
		{Round{Result: equal, Passed: 1}, "WARN"},
		{Round{Result: different, After: &equal}, "WARN"},
		{Round{Result: different, After: &different}, "ERROR"},
		{Round{Result: different, Err: errors.New("x")}, "ERROR"},
		{Round{Result: Result{Verdict: Unknown}}, "WARN"},
		{Round{Err: errors.New("x")}, "WARN"},
	} {
		out.Reset()
		test.round.Log(logger)
		if got := out.String(); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s is logged as %q, want %q", test.round, got, test.want)
		}
	}
}

// A section that is added while the copy is repaired does not end the process.
func TestRollingWhileASectionComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 60, namespaces: []string{"n0", "n1"}})
		_, rounds := l.roll(RollingOptions{Options: Options{PageSize: 10}})
		<-rounds
		l.corrupt(keyOf(51), setText("wrong"))
		for l.target.Replica.Health().Lists[recheckCause] == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if err := l.target.Replica.AddSection(tarn.Section[object]{Name: "n9", Source: l.sourceOf("n9"), Prefix: "n9/"}); err != nil {
			t.Fatal(err)
		}
		if r := <-rounds; r.Err != nil || !r.Repaired() {
			t.Errorf("%s", r)
		}
	})
}
