package tarn

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// twoLakes is a replica of two sections, and what they copy.
func twoLakes(t *testing.T, opts Options[*entry]) (c *copying, north, south *remote) {
	t.Helper()
	north, south = newRemote("north/a"), newRemote("south/a", "south/b", "south/c")
	c = &copying{t: t, store: newPlainStore(), ended: make(chan error, 1)}
	opts.Name = "lakes"
	opts.OnError = func(context.Context, error) {}
	var err error
	c.Replica, err = NewReplicaOf([]Section[*entry]{sectionOf("north", north), sectionOf("south", south)}, c.store, opts)
	if err != nil {
		t.Fatal(err)
	}
	c.ctx, c.cancel = cancelable(t)
	return c, north, south
}

func sectionOf(name string, r *remote) Section[*entry] {
	return Section[*entry]{Name: name, Source: r, Prefix: Key(name + "/")}
}

func TestSectionsAreOneCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, south := twoLakes(t, Options[*entry]{})
		south.mute = true
		c.start()
		synctest.Wait()
		if isClosed(c.Synced()) || c.Health().Synced {
			t.Error("synced although the south has not answered")
		}
		wantError(t, c.WaitSynced(within(t, time.Second)), context.DeadlineExceeded, "lakes: not synced")
		if v := c.Version(); v != "" {
			t.Errorf("at version %s before the south is there", v)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, north, south := twoLakes(t, Options[*entry]{})
		seen := c.subscribe(SubscribeOptions{})
		c.start()
		synctest.Wait()
		if !isClosed(c.Synced()) || !isClosed(seen.Synced()) || c.Len() != 4 {
			t.Errorf("synced %v, its subscriber %v, %d objects of 4", isClosed(c.Synced()), isClosed(seen.Synced()), c.Len())
		}
		north.put("north/b", "")
		south.remove("south/b")
		north.remove("north/a")
		synctest.Wait()
		if c.Len() != 3 || len(seen.has) != 3 {
			t.Errorf("%d objects, the subscriber has %d", c.Len(), len(seen.has))
		}
	})
}

// A section that reads its state again removes nothing of another section.
func TestSectionRelistsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, north, south := twoLakes(t, Options[*entry]{})
		seen := c.subscribe(SubscribeOptions{})
		c.start()
		synctest.Wait()
		north.fail(Because(ReasonExpired, 0, errors.New("compacted")))
		synctest.Wait()
		north.remove("north/a")
		north.put("north/z", "")
		north.compact()
		north.fail(nil)
		south.put("south/d", "")
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, key := range []Key{"north/z", "south/a", "south/b", "south/c", "south/d"} {
			if _, ok := c.Get(key); !ok {
				t.Errorf("%s is missing", key)
			}
		}
		if c.Len() != 5 || len(seen.has) != 5 {
			t.Errorf("%d objects of 5, the subscriber has %d", c.Len(), len(seen.has))
		}
	})
}

// The version is the oldest of all sections'; one's own write is waited for by
// its key.
func TestSectionVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, north, south := twoLakes(t, Options[*entry]{})
		c.start()
		synctest.Wait()
		if v := c.Version(); v != "1" {
			t.Errorf("at %s, the north is at 1 and the south at 3", v)
		}
		written := south.put("south/d", "")
		if err := c.WaitForKey(within(t, time.Second), "south/d", written); err != nil {
			t.Error(err)
		}
		if _, ok := c.Get("south/d"); !ok {
			t.Error("what was waited for is not there")
		}
		wantError(t, c.WaitFor(within(t, time.Second), written), context.DeadlineExceeded, `version 4 not reached, the copy is at "1"`)
		waited := make(chan error)
		go func() { waited <- c.WaitFor(t.Context(), written) }()
		for range 3 {
			synctest.Wait()
			north.bookmark()
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
		if v := c.Version(); v != "4" {
			t.Errorf("at %s, both are at 4", v)
		}
	})
}

// The trouble of one section is reported with its name, and does not count for the others.
func TestSectionHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, north, south := twoLakes(t, Options[*entry]{})
		c.start()
		synctest.Wait()
		if h := c.Health(); h.State != StateWatching || h.Err != nil || len(h.Sections) != 2 || h.Sections[1].Name != "lakes (south)" || !h.WatchSince.Equal(time.Now()) {
			t.Errorf("%s: %+v", h, h.Sections)
		}
		frozen := errors.New("frozen over")
		north.fail(frozen)
		time.Sleep(time.Second)
		south.put("south/d", "")
		synctest.Wait()
		h := c.Health()
		if !errors.Is(h.Err, frozen) || !strings.Contains(h.String(), "lakes (north)") || h.Sections[1].Err != nil {
			t.Errorf("%s", h)
		}
		if _, ok := c.Get("south/d"); !ok {
			t.Error("the south is held up by the north")
		}
		if !h.WatchSince.IsZero() || h.Sections[1].WatchAge != time.Second {
			t.Errorf("not all are watched, and together they are since %s; the south for %s", h.WatchSince, h.Sections[1].WatchAge)
		}
		if h.AllFailures == 0 || h.AllFailures != h.Sections[0].AllFailures {
			t.Errorf("%d failures of %d", h.AllFailures, h.Sections[0].AllFailures)
		}
		if got := h.Events; got != h.Sections[0].Events+h.Sections[1].Events {
			t.Errorf("%d events", got)
		}
		_ = c.stop()
		if s := c.Health().State; s != StateStopped || !isClosed(c.Done()) {
			t.Errorf("%s after the end, done: %v", s, isClosed(c.Done()))
		}
	})
}

// Each object is offered again once in a period, not once for every section.
func TestSectionsResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := twoLakes(t, Options[*entry]{ResyncPeriod: time.Minute})
		again := 0
		_, err := c.Subscribe(func(change Change[*entry]) {
			if change.Type == Sync {
				again++
			}
		}, SubscribeOptions{Syncs: func() bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		c.start()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if again != 4 {
			t.Errorf("4 objects were offered again %d times", again)
		}
	})
}

func TestSectionsNeedSourcesAndKeys(t *testing.T) {
	_, err := NewReplicaOf(nil, newPlainStore(), Options[*entry]{Name: "lakes"})
	wantText(t, err, `"lakes" has 0 sections`)
	for says, sections := range map[string][]Section[*entry]{
		`"lakes": section "north" has no source`:     {{Name: "north", Prefix: "north/"}},
		`two sections are called "north"`:            {sectionOf("north", newRemote()), {Name: "north", Source: newRemote(), Prefix: "south/"}},
		`are also those of section "north" ("north/`: {{Name: "bay", Source: newRemote(), Prefix: "north/bay/"}, sectionOf("north", newRemote())},
		`are also those of section "all" ("")`:       {{Name: "all", Source: newRemote()}, sectionOf("north", newRemote())},
	} {
		_, err := NewReplicaOf(sections, newPlainStore(), Options[*entry]{Name: "lakes"})
		wantText(t, err, says)
	}
}

// prefixStore counts the objects that are walked.
type prefixStore struct {
	*plainStore
	walked *atomic.Int64
}

func (s prefixStore) All() iter.Seq2[Key, *entry] { return s.walk("") }

func (s prefixStore) Prefix(prefix Key) iter.Seq2[Key, *entry] { return s.walk(prefix) }

func (s prefixStore) walk(prefix Key) iter.Seq2[Key, *entry] {
	return func(yield func(Key, *entry) bool) {
		for key, object := range s.plainStore.All() {
			if !key.HasPrefix(prefix) {
				continue
			}
			s.walked.Add(1)
			if !yield(key, object) {
				return
			}
		}
	}
}

// What concerns one section costs that section, where the store is in the order of keys.
func TestSectionsWalkOnlyTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		north, south := newRemote("north/a", "north/b"), newRemote("south/a", "south/b", "south/c")
		var walked atomic.Int64
		replica, err := NewReplicaOf([]Section[*entry]{sectionOf("north", north), sectionOf("south", south)},
			prefixStore{newPlainStore(), &walked}, Options[*entry]{Name: "lakes", ResyncPeriod: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		subscription, err := replica.Subscribe(func(Change[*entry]) {}, SubscribeOptions{Syncs: func() bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		defer subscription.Close()
		ctx, cancel := cancelable(t)
		go func() { _ = replica.Run(ctx) }()
		synctest.Wait()
		walked.Store(0)
		replica.Recheck("asked")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if lists := replica.Health().Lists["asked"]; lists != 2 || walked.Load() != 5 {
			t.Errorf("%d relists, of each section, walked %d objects, want 5", lists, walked.Load())
		}
		walked.Store(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if walked.Load() != 5 {
			t.Errorf("a resync of each section walked %d objects, want 5", walked.Load())
		}
		cancel()
		<-replica.Done()
	})
}

func wantText(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("the error is %v; want one that says %q", err, says)
	}
}

// lingering is a source whose streams end a while after their context, as over a transport
// that does not notice it.
type lingering struct{ *remote }

func (l lingering) Watch(ctx context.Context, q WatchQuery) (Stream[*entry], error) {
	stream, err := l.remote.Watch(ctx, q)
	return lingeringStream{stream}, err
}

type lingeringStream struct{ Stream[*entry] }

func (l lingeringStream) Next(ctx context.Context, buf []Event[*entry]) (int, error) {
	n, err := l.Stream.Next(ctx, buf)
	if ctx.Err() != nil {
		time.Sleep(time.Second)
	}
	return n, err
}

// A section that is added while one of its name is being removed keeps its objects.
func TestSectionAddedWhileItIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		north, south := newRemote("north/a"), newRemote("south/a")
		sink := newFakeSink(policy("sink"))
		c := fleetOf(t, map[string]*remote{"south": south}, Options[*entry]{Sinks: []Sink[*entry]{sink}})
		s := clusterOf("north", north)
		s.Source = lingering{north}
		if err := c.AddSection(s); err != nil {
			t.Fatal(err)
		}
		seen := c.subscribe(SubscribeOptions{})
		c.start()
		settle()
		removed := make(chan error)
		go func() { removed <- c.RemoveSection("north") }()
		time.Sleep(time.Millisecond)
		other := newRemote("north/b", "north/c")
		if err := errors.Join(c.AddSection(clusterOf("north", other)), <-removed); err != nil {
			t.Fatal(err)
		}
		settle()
		if c.Len() != 3 || len(seen.state()) != 3 || len(sink.state()) != 3 || len(sink.positions.All()) != 2 {
			t.Errorf("%d objects of 3, the subscriber has %d, the sink %d at %v", c.Len(), len(seen.state()), len(sink.state()), sink.positions.All())
		}
	})
}
