package tarn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// bare is a store that can do no more than a replica asks of it.
type bare struct{ tarn.ReadStore[Lake] }

// fronted is one that tells which store is behind it.
type fronted struct{ bare }

func (f fronted) Unwrap() tarn.ReadStore[Lake] { return f.ReadStore }

// counting counts the snapshots that are taken and closed.
type counting struct {
	*memory.Store[Lake]
	taken, closed int
}

func (c *counting) TakeSnapshot() tarn.Snapshot[Lake] {
	c.taken++
	return countedSnapshot{c.Store.Snapshot(), c}
}

type countedSnapshot struct {
	*memory.Snapshot[Lake]
	of *counting
}

func (s countedSnapshot) Close() {
	s.of.closed++
	s.Snapshot.Close()
}

// running is a replica that is run until the test ends.
func running(t *testing.T, name string, source tarn.Source[Lake], store tarn.ReadStore[Lake], opts tarn.Options[Lake]) *tarn.Replica[Lake] {
	t.Helper()
	opts.Name = name
	r, err := tarn.NewReplica(source, store, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go r.Run(ctx)
	t.Cleanup(func() {
		cancel()
		<-r.Done()
	})
	if err := r.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

func levels(t *testing.T, r *tarn.Replica[Lake], v *tarn.View) string {
	t.Helper()
	then, err := r.In(v)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for key, lake := range then.All() {
		if same, ok := then.Get(key); !ok || same != lake {
			t.Errorf("All shows %v, Get %v", lake, same)
		}
		all = append(all, fmt.Sprintf("%s=%d", key, lake.Level))
	}
	return fmt.Sprintf("%s @%s", strings.Join(all, " "), then.Version())
}

// A view waits for each member as asked, and shows the same states whatever is
// written later.
func TestViewWaitsAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upper, lower := lakesAt(1), lakesAt(1)
		ours, theirs := running(t, "ours", upper, memory.New[Lake](), tarn.Options[Lake]{}), running(t, "theirs", lower, fronted{bare{memory.New[Lake]()}}, tarn.Options[Lake]{})

		var view *tarn.View
		var err error
		taken := make(chan struct{})
		go func() {
			defer close(taken)
			view, err = tarn.NewView(t.Context(), ours.AtLeast("2"), theirs.AtLeast("3", "upper tarn"), ours)
		}()
		for _, write := range []func(){
			func() { upper.Set("upper tarn", 20) }, func() { lower.Set("upper tarn", 29) }, func() { lower.Set("upper tarn", 30) },
		} {
			synctest.Wait()
			select {
			case <-taken:
				t.Fatalf("the view did not wait: %v, %v", view, err)
			default:
			}
			write()
		}
		<-taken
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		upper.Set("upper tarn", 21)
		lower.Set("new", 31)
		synctest.Wait()
		for want, r := range map[string]*tarn.Replica[Lake]{"upper tarn=20 @2": ours, "upper tarn=30 @3": theirs} {
			if got := levels(t, r, view); got != want {
				t.Errorf("the view shows %s, want %s", got, want)
			}
		}
		if got, want := view.String(), "ours at 2, theirs at 3, ours at 2"; got != want {
			t.Errorf("the view says %q, want %q", got, want)
		}
		view.Close()
		view.Close()

		if view, err = tarn.NewView(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		if got, want := levels(t, theirs, view), "new=31 upper tarn=30 @4"; got != want {
			t.Errorf("a later view shows %s, want %s", got, want)
		}
		if _, err := ours.In(view); err == nil || !strings.Contains(err.Error(), "ours: it is not in this view") {
			t.Errorf("a replica that is not in the view: %v", err)
		}
	})
}

func TestViewsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := &counting{Store: memory.New[Lake]()}
		able := running(t, "able", lakesAt(1), counted, tarn.Options[Lake]{})
		unable := running(t, "unable", lakesAt(1), bare{memory.New[Lake]()}, tarn.Options[Lake]{})
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		for _, test := range []struct {
			ctx    context.Context
			member tarn.Member
			want   string
		}{
			{t.Context(), unable, "unable: its store (tarn_test.bare) cannot keep a state for a view"},
			{t.Context(), able.AtLeast("mine"), `able: waiting for version "mine"`},
			{ended, able.AtLeast("99"), "able: version 99 not reached, the copy is at \"1\": enough"},
			{ended, able.AtLeast("99", "upper tarn"), "able: version 99 not reached"},
			{t.Context(), nil, "member 1 of a view is nil"},
			{t.Context(), (*tarn.Replica[Lake])(nil), "given a *tarn.Replica"},
			{t.Context(), (*tarn.Replica[Lake])(nil).AtLeast("1"), "given a *tarn.Replica"},
		} {
			view, err := tarn.NewView(test.ctx, able, test.member)
			if view != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v; want an error with %q", view, err, test.want)
			}
		}
		if counted.taken == 0 || counted.taken != counted.closed {
			t.Errorf("of %d states that were taken for views which failed, %d were let go", counted.taken, counted.closed)
		}
	})
}

func TestMemoryOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New[Lake]()
		for want, kept := range map[*memory.Store[Lake]][]tarn.ReadStore[Lake]{
			store: {store, fronted{bare{store}}, fronted{bare{fronted{bare{store}}}}, &counting{Store: store}},
			nil:   {bare{store}},
		} {
			for _, s := range kept {
				r, err := tarn.NewReplica(lakesAt(1), s, tarn.Options[Lake]{})
				if err != nil {
					t.Fatal(err)
				}
				if got, ok := memory.Of(r); got != want || ok != (want != nil) {
					t.Errorf("the memory of a %T is %p, %t; want %p", s, got, ok, want)
				}
			}
		}
	})
}
