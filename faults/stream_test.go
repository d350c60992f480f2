package faults_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
)

func TestStreamEnds(t *testing.T) {
	for kind, want := range map[faults.Kind]struct {
		is     error
		reason tarn.Reason
	}{
		faults.Stall:       {is: context.DeadlineExceeded},
		faults.CutEnd:      {is: io.EOF},
		faults.CutExpire:   {is: faults.ErrInjected, reason: tarn.ReasonExpired},
		faults.CutBusy:     {is: faults.ErrInjected, reason: tarn.ReasonBusy},
		faults.CutInternal: {is: faults.ErrInjected, reason: tarn.ReasonInternal},
		faults.CutFail:     {is: faults.ErrInjected, reason: tarn.ReasonUnknown},
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, faults.Limits{Events: 5, Life: time.Minute}, kind)
				lengths := map[int]bool{}
				const streams = 50
				for range streams {
					start := time.Now()
					got, err := r.watch(tarn.WatchQuery{From: "0"}, 10)
					if !errors.Is(err, want.is) || tarn.ReasonOf(err) != want.reason {
						t.Fatalf("the stream ends with %v (%v), want %v (%v)", err, tarn.ReasonOf(err), want.is, want.reason)
					}
					if took := time.Since(start); kind != faults.Stall && took > time.Minute {
						t.Errorf("it ends only after %s", took)
					}
					if !strings.HasPrefix("a@1 b@2 c@3", got) {
						t.Errorf("it brings %q", got)
					}
					lengths[len(strings.Fields(got))] = true
				}
				if len(lengths) != 4 {
					t.Errorf("streams have brought only %v events, never another number", lengths)
				}
				r.counted(kind, streams)
				if r.server.open != 0 {
					t.Errorf("%d streams were left open", r.server.open)
				}
			})
		})
	}
}

// A busy source that ends a stream sometimes says for how long, sometimes not.
func TestCutBusyRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{}, faults.CutBusy)
		said := map[bool]int{}
		for range 40 {
			_, err := r.watch(tarn.WatchQuery{}, 10)
			said[tarn.RetryAfter(err) > 0]++
		}
		if said[true] < 5 || said[false] < 5 {
			t.Errorf("of 40 streams %d said so and %d did not", said[true], said[false])
		}
	})
}

func TestEventFaults(t *testing.T) {
	initial := tarn.WatchQuery{Initial: true, Timeout: 90 * time.Second}
	plain := tarn.WatchQuery{From: "0", Timeout: 90 * time.Second}
	for name, test := range map[string]struct {
		kind  faults.Kind
		query tarn.WatchQuery
		room  int
		want  string
		times int
	}{
		"duplicate": {faults.Duplicate, plain, 10, "a@1 a@1 b@2 b@2 c@3 c@3 mark:3", 3},
		"reorder":   {faults.Reorder, plain, 10, "b@2 a@1 c@3 mark:3", 1},
		"reorder, without room": {faults.Reorder, plain, 1,
			"b@2 a@1 c@3 mark:3", 1},
		"reorder, up to the end": {faults.Reorder, initial, 10, "b@2 a@1 c@3 end:3 mark:3", 1},
		"lag":                    {faults.Lag, plain, 10, "a@1 b@2 c@3 mark:3", 3},
		"drop bookmark":          {faults.DropBookmark, initial, 10, "a@1 b@2 c@3 end:3", 1},
		"drop end":               {faults.DropEnd, initial, 10, "a@1 b@2 c@3 mark:3", 1},
		"endless": {faults.Endless, tarn.WatchQuery{Initial: true, Timeout: 3 * time.Second}, 10,
			"a@1 b@2 c@3 a@1 b@2 c@3 a@1 b@2 c@3 a@1 b@2 c@3", 1},
		"undecodable": {faults.Undecodable, plain, 10, "? ? ? mark:3", 3},
		"bad":         {faults.Bad, plain, 10, "bad:a bad:b bad:c mark:3", 3},
		"corrupt":     {faults.Corrupt, plain, 10, "nil nil nil mark:3", 3},
		"oversize":    {faults.Oversize, plain, 10, "large:a large:b large:c mark:3", 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, faults.Limits{}, test.kind)
				got, err := r.watch(test.query, test.room)
				if err != io.EOF {
					t.Errorf("the stream ended with %v", err)
				}
				if got != test.want {
					t.Errorf("got  %q\nwant %q", got, test.want)
				}
				r.counted(test.kind, test.times)
			})
		})
	}
}

// How many events come again is drawn; they are always the last ones.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{}, faults.Replay)
		got, err := r.watch(tarn.WatchQuery{From: "0", Timeout: time.Second}, 10)
		if err != io.EOF {
			t.Errorf("the stream ended with %v", err)
		}
		rest := got
		for _, step := range []struct{ first, again []string }{
			{[]string{"a@1"}, []string{"a@1"}},
			{[]string{"b@2"}, []string{"a@1 b@2", "b@2"}},
			{[]string{"c@3"}, []string{"a@1 b@2 c@3", "b@2 c@3", "c@3"}},
		} {
			for _, choices := range [][]string{step.first, step.again} {
				i := slices.IndexFunc(choices, func(s string) bool { return strings.HasPrefix(rest, s) })
				if i < 0 {
					t.Fatalf("got %q; %q should begin with one of %q", got, rest, choices)
				}
				rest = strings.TrimPrefix(strings.TrimPrefix(rest, choices[i]), " ")
			}
		}
		r.counted(faults.Replay, 3)
	})
}

func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{Delay: time.Minute}, faults.Lag)
		stream, err := r.source.Watch(t.Context(), tarn.WatchQuery{From: "2"})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		buf := make([]tarn.Event[*thing], 10)
		impatient, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		if n, err := stream.Next(impatient, buf); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an impatient reader gets %d, %v", n, err)
		}
		start := time.Now()
		n, err := stream.Next(t.Context(), buf)
		if n != 1 || err != nil || buf[0].Object.name != "c" {
			t.Fatalf("the late event is %v, %v", buf[:n], err)
		}
		if took := time.Since(start); took <= 0 || took > time.Minute {
			t.Errorf("it was %s late", took)
		}
	})
}

// Events of one key never change places, and an event that waits for a partner is
// delivered after a while, or when a reader comes back.
func TestReorderKeepsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{}, faults.Reorder)
		r.server.put("c")
		r.server.put("c")
		got, err := r.watch(tarn.WatchQuery{From: "2", Timeout: 10 * time.Second}, 10)
		if want := "c@3 c@4 c@5"; got != want || err != io.EOF {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
		stream, err := r.source.Watch(t.Context(), tarn.WatchQuery{From: "5"})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		r.server.put("a")
		buf := make([]tarn.Event[*thing], 10)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if n, err := stream.Next(impatient, buf); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an impatient reader gets %d, %v", n, err)
		}
		r.server.put("b")
		if n, err := stream.Next(t.Context(), buf); n != 2 || err != nil || buf[0].Object.name != "b" || buf[1].Object.name != "a" {
			t.Fatalf("after that there are %v, %v", buf[:n], err)
		}
		r.server.put("a")
		if n, err := stream.Next(t.Context(), buf); n != 1 || err != nil || buf[0].Object.name != "a" {
			t.Fatalf("a single event comes as %v, %v", buf[:n], err)
		}
	})
}

// A stream that is cut brings both events of a swap, or none.
func TestSwapIsNotTorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{Events: 3}, faults.Reorder, faults.CutEnd)
		for range 50 {
			got, err := r.watch(tarn.WatchQuery{From: "0"}, 2)
			if err != io.EOF {
				t.Fatal(err)
			}
			switch got {
			case "", "a@1", "b@2 a@1", "b@2 a@1 c@3":
			default:
				t.Errorf("got %q", got)
			}
		}
	})
}

// When the day ends, the initial events end too, and the events that happened
// meanwhile follow.
func TestEndlessEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, faults.Limits{}, faults.Endless)
		r.plan.Until(time.Now().Add(1500 * time.Millisecond))
		time.AfterFunc(time.Second, func() { r.server.put("d") })
		got, err := r.watch(tarn.WatchQuery{Initial: true, Timeout: 10 * time.Second}, 10)
		if want := "a@1 b@2 c@3 a@1 b@2 c@3 a@1 b@2 c@3 end:3 d@4"; got != want || err != io.EOF {
			t.Errorf("got  %q, %v\nwant %q", got, err, want)
		}
	})
}

// So does what had come together with their end.
func TestEndlessEndsInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := faults.New(1, faults.Mix{faults.Endless: 1}).Until(time.Now().Add(500 * time.Millisecond))
		source := faults.Source(batched{newServer()}, plan, faults.SourceOptions[*thing]{})
		stream, err := source.Watch(t.Context(), tarn.WatchQuery{Initial: true})
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		buf := make([]tarn.Event[*thing], 10)
		for {
			n, err := stream.Next(t.Context(), buf)
			if err != nil {
				break
			}
			for _, e := range buf[:n] {
				seen = append(seen, describe(e))
			}
		}
		if got, want := strings.Join(seen, " "), "a@1 a@1 end:1 b@2 mark:2"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// batched is a source whose stream brings all it has at once.
type batched struct{ *server }

func (b batched) Watch(context.Context, tarn.WatchQuery) (tarn.Stream[*thing], error) {
	return &batch{
		{Type: tarn.EventAdded, Object: &thing{name: "a", version: 1}},
		{Type: tarn.EventBookmark, Version: "1", InitialEnd: true},
		{Type: tarn.EventAdded, Object: &thing{name: "b", version: 2}},
		{Type: tarn.EventBookmark, Version: "2"},
	}, nil
}

type batch []tarn.Event[*thing]

func (b *batch) Next(_ context.Context, buf []tarn.Event[*thing]) (int, error) {
	if len(*b) == 0 {
		return 0, io.EOF
	}
	n := copy(buf, *b)
	*b = (*b)[n:]
	return n, nil
}

func (*batch) Close() {}
