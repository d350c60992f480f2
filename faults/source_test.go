package faults_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
)

// rig is a source that always has the same faults, over a server of three
// things at version 3.
type rig struct {
	*testing.T
	server *server
	plan   *faults.Plan
	source tarn.Source[*thing]
}

func newRig(t *testing.T, limits faults.Limits, always ...faults.Kind) *rig {
	mix := faults.Mix{}
	for _, kind := range always {
		mix[kind] = 1
	}
	s := newServer("a", "b", "c")
	plan := faults.New(1, mix).Within(limits)
	return &rig{t, s, plan, faults.Source(s, plan, faults.SourceOptions[*thing]{
		Corrupt:  []func(*thing) *thing{func(*thing) *thing { return nil }},
		Oversize: func(o *thing) *thing { return &thing{o.name, strings.Repeat("x", 1<<20), o.version} },
	})}
}

// list waits for an hour.
func (r *rig) list(q tarn.ListQuery) (tarn.Page[*thing], error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
	defer cancel()
	return r.source.List(ctx, q)
}

// watch reads a stream for an hour, with room for that many events at a time. It
// returns what came, as text, and how it ended; silence ends with the hour.
func (r *rig) watch(q tarn.WatchQuery, room int) (string, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
	defer cancel()
	stream, err := r.source.Watch(ctx, q)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var seen []string
	buf := make([]tarn.Event[*thing], room)
	for {
		n, err := stream.Next(ctx, buf)
		for _, e := range buf[:n] {
			seen = append(seen, describe(e))
		}
		if err != nil {
			return strings.Join(seen, " "), err
		}
		if n == 0 {
			r.Fatal("Next returned neither event nor error")
		}
	}
}

func describe(e tarn.Event[*thing]) string {
	switch {
	case e.Type == tarn.EventUndecodable:
		return "?"
	case e.Bad.Err != nil:
		return "bad:" + string(e.Bad.Key)
	case e.Type == tarn.EventBookmark && e.InitialEnd:
		return "end:" + string(e.Version)
	case e.Type == tarn.EventBookmark:
		return "mark:" + string(e.Version)
	case e.Object != nil && len(e.Object.uid) > 1000:
		return "large:" + e.Object.name
	default:
		return e.Object.String()
	}
}

// counted says how often a kind happened; it must be the only one.
func (r *rig) counted(kind faults.Kind, times int) {
	r.Helper()
	counts := r.plan.History().Counts()
	if len(counts) > 1 || counts[kind] != times {
		r.Errorf("the history has %v, want %d of %q:\n%s", counts, times, kind, r.plan.History())
	}
}

func TestRequestFaults(t *testing.T) {
	list := func(at tarn.Version, token string) func(*rig) error {
		return func(r *rig) error {
			_, err := r.list(tarn.ListQuery{AtLeast: at, Continue: token})
			return err
		}
	}
	watch := func(q tarn.WatchQuery) func(*rig) error {
		return func(r *rig) error {
			_, err := r.watch(q, 10)
			return err
		}
	}
	for _, test := range []struct {
		kind   faults.Kind
		ask    func(*rig) error
		reason tarn.Reason
		is     error
		after  bool
	}{
		{kind: faults.Refuse, ask: list("3", ""), reason: tarn.ReasonRefused, is: syscall.ECONNREFUSED},
		{kind: faults.Refuse, ask: watch(tarn.WatchQuery{}), reason: tarn.ReasonRefused},
		{kind: faults.Busy, ask: list("", ""), reason: tarn.ReasonBusy},
		{kind: faults.Busy, ask: watch(tarn.WatchQuery{}), reason: tarn.ReasonBusy},
		{kind: faults.BusyFor, ask: list("0", ""), reason: tarn.ReasonBusy, after: true},
		{kind: faults.BusyFor, ask: watch(tarn.WatchQuery{}), reason: tarn.ReasonBusy, after: true},
		{kind: faults.Internal, ask: list("0", ""), reason: tarn.ReasonInternal},
		{kind: faults.Internal, ask: watch(tarn.WatchQuery{}), reason: tarn.ReasonInternal},
		{kind: faults.Fail, ask: list("0", ""), reason: tarn.ReasonUnknown},
		{kind: faults.Fail, ask: watch(tarn.WatchQuery{}), reason: tarn.ReasonUnknown},
		{kind: faults.Expire, ask: list("3", ""), reason: tarn.ReasonExpired},
		{kind: faults.Expire, ask: watch(tarn.WatchQuery{From: "3"}), reason: tarn.ReasonExpired},
		{kind: faults.TooNew, ask: list("3", ""), reason: tarn.ReasonTooNew},
		{kind: faults.TooNew, ask: watch(tarn.WatchQuery{From: "3", Initial: true}), reason: tarn.ReasonTooNew},
		{kind: faults.NoWatchList, ask: watch(tarn.WatchQuery{Initial: true}), reason: tarn.ReasonNoWatchList},
		{kind: faults.ExpireToken, ask: list("", "0.3+1"), reason: tarn.ReasonExpired},
		{kind: faults.NoList, ask: list("", ""), is: tarn.ErrNoList},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, faults.Limits{}, test.kind)
				err := test.ask(r)
				if !errors.Is(err, faults.ErrInjected) || tarn.ReasonOf(err) != test.reason {
					t.Errorf("the answer is %q (%v), want an injected one of reason %v", err, tarn.ReasonOf(err), test.reason)
				}
				if test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("%q is not %q", err, test.is)
				}
				if after := tarn.RetryAfter(err); (after > 0) != test.after || after%time.Second != 0 || after > 30*time.Second {
					t.Errorf("asks to be left alone for %s", after)
				}
				r.counted(test.kind, 1)
			})
		})
	}
}

// Faults that do not fit a request do not happen to it.
func TestRequestFaultsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{}, faults.Expire, faults.TooNew, faults.NoWatchList, faults.ExpireToken, faults.DropEnd, faults.Endless)
		for _, at := range []tarn.Version{tarn.Any, tarn.Latest} {
			if page, err := r.list(tarn.ListQuery{AtLeast: at}); err != nil || len(page.Items) != 3 {
				t.Errorf("the list at %q has %v, %v", at, page.Items, err)
			}
			if got, err := r.watch(tarn.WatchQuery{From: at, Timeout: time.Second}, 10); err != io.EOF || got != "a@1 b@2 c@3" {
				t.Errorf("the watch from %q brings %q, %v", at, got, err)
			}
		}
		if h := r.plan.History(); len(h) > 0 {
			t.Errorf("there were faults:\n%s", h)
		}
	})
}

func TestHang(t *testing.T) {
	for name, test := range map[string]struct {
		limits faults.Limits
		begin  func(*faults.Plan)
		took   time.Duration
		is     error
	}{
		"until the context ends": {took: time.Hour, is: context.DeadlineExceeded},
		"until a limit":          {limits: faults.Limits{Hang: time.Minute}, took: time.Minute, is: syscall.ETIMEDOUT},
		"until the day ends": {took: 2 * time.Minute, is: syscall.ETIMEDOUT,
			begin: func(p *faults.Plan) { p.Until(time.Now().Add(2 * time.Minute)) }},
		"until the day is ended": {took: 3 * time.Minute, is: syscall.ETIMEDOUT,
			begin: func(p *faults.Plan) { time.AfterFunc(3*time.Minute, p.End) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, test.limits, faults.Hang)
				if test.begin != nil {
					test.begin(r.plan)
				}
				start := time.Now()
				_, err := r.list(tarn.ListQuery{})
				if took := time.Since(start); took != test.took || !errors.Is(err, test.is) {
					t.Errorf("hung for %s, then %v; want %s, %v", took, err, test.took, test.is)
				}
				r.counted(faults.Hang, 1)
			})
		})
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{Delay: time.Minute}, faults.Delay)
		for range 20 {
			start := time.Now()
			if _, err := r.list(tarn.ListQuery{}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took < time.Millisecond || took > time.Minute {
				t.Errorf("the delay was %s", took)
			}
		}
		r.counted(faults.Delay, 20)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		cancel(why)
		if _, err := r.source.Watch(ctx, tarn.WatchQuery{}); err != why {
			t.Errorf("a delayed watch whose context ended says %v", err)
		}
	})
}

func TestListFaults(t *testing.T) {
	for kind, want := range map[faults.Kind]struct {
		page  string
		times int
	}{
		faults.NoVersion: {"version  items  bad ", 1},
		faults.Bad:       {"version 3 items  bad a b c", 3},
		faults.Corrupt:   {"version 3 items nil nil nil bad ", 3},
		faults.Oversize:  {"version 3 items large:a large:b large:c bad ", 3},
	} {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, faults.Limits{}, kind)
			page, err := r.list(tarn.ListQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var items, bad []string
			for _, o := range page.Items {
				items = append(items, describe(tarn.Event[*thing]{Object: o}))
			}
			for _, b := range page.Bad {
				bad = append(bad, string(b.Key))
				if !errors.Is(b.Err, tarn.ErrUndecodable) || !errors.Is(b.Err, faults.ErrInjected) {
					t.Errorf("the bad item has the error %v", b.Err)
				}
			}
			got := "version " + string(page.Version) + " items " + strings.Join(items, " ") + " bad " + strings.Join(bad, " ")
			if got != want.page {
				t.Errorf("got  %q\nwant %q", got, want.page)
			}
			r.counted(kind, want.times)
			if whole, err := r.server.List(t.Context(), tarn.ListQuery{}); err != nil || !slices.ContainsFunc(whole.Items, func(o *thing) bool { return o.String() == "a@1" }) {
				t.Errorf("the server itself now has %v, %v", whole.Items, err)
			}
		})
	}
}
