package tarn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

// fleetOf is a replica of independent sections, one for each remote, by name.
func fleetOf(t *testing.T, remotes map[string]*remote, opts Options[*entry]) *copying {
	t.Helper()
	c := &copying{t: t, store: newPlainStore(), ended: make(chan error, 1)}
	opts.Name = "pods"
	opts.OnError = func(context.Context, error) {}
	var sections []Section[*entry]
	for name, r := range remotes {
		sections = append(sections, clusterOf(name, r))
	}
	var err error
	if c.Replica, err = NewReplicaOf(sections, c.store, opts); err != nil {
		t.Fatal(err)
	}
	c.ctx, c.cancel = cancelable(t)
	return c
}

func clusterOf(name string, r *remote) Section[*entry] {
	s := sectionOf(name, r)
	s.Independent = true
	return s
}

// sectionHealth finds the Health of a section.
func sectionHealth(t *testing.T, h Health, name string) Health {
	t.Helper()
	for _, s := range h.Sections {
		if s.Section == name {
			return s
		}
	}
	t.Fatalf("%s: there is no section %s", h, name)
	return Health{}
}

// A section that fails keeps nobody waiting, and says so itself.
func TestIndependentSectionBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, dead := newRemote("here/a", "here/b"), newRemote("dead/a")
		dead.fail(errors.New("no route to host"))
		sink := newFakeSink(SinkPolicy[*entry]{Name: "disk"})
		c := fleetOf(t, map[string]*remote{"here": here, "dead": dead}, Options[*entry]{Sinks: []Sink[*entry]{sink}})
		seen := c.subscribe(SubscribeOptions{})
		c.start()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		h := c.Health()
		if !isClosed(c.Synced()) || !isClosed(seen.Synced()) || h.Synced || h.Version != "" {
			t.Errorf("synced %v, the subscriber %v, Health.Synced %v at %q", isClosed(c.Synced()), isClosed(seen.Synced()), h.Synced, h.Version)
		}
		if s := sectionHealth(t, h, "dead"); s.Synced || s.Err == nil || s.Name != "pods (dead)" {
			t.Errorf("the dead one: %s", s)
		}
		if s := sectionHealth(t, h, "here"); !s.Synced || s.Err != nil || s.Version == "" {
			t.Errorf("the living one: %s", s)
		}
		sink.wantState(t, here)
		wantError(t, c.WaitFor(within(t, time.Second), "1"), ErrOpaqueVersion, "pods")
		if err := c.WaitForKey(within(t, time.Second), "here/a", here.version()); err != nil {
			t.Error(err)
		}
		wantError(t, c.WaitForKey(within(t, time.Second), "dead/a", "1"), context.DeadlineExceeded, "no route to host")
		dead.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if h := c.Health(); !h.Synced || h.Err != nil || c.Len() != 3 || len(seen.state()) != 3 || len(sink.state()) != 3 {
			t.Errorf("after it came back: %s, %d objects, the subscriber has %d, the sink %d", h, c.Len(), len(seen.state()), len(sink.state()))
		}
	})
}

// Sections come and go while the others are followed.
func TestSectionsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		north, south, east := newRemote("north/a"), newRemote("south/a", "south/b"), newRemote("east/a")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "disk"})
		c := fleetOf(t, map[string]*remote{"north": north, "south": south}, Options[*entry]{Sinks: []Sink[*entry]{sink}})
		var removed []Key
		seen := c.subscribe(SubscribeOptions{}, func(change Change[*entry]) {
			if change.Removed {
				removed = append(removed, change.Key)
			}
		})
		c.start()
		synctest.Wait()
		sink.heard()
		east.mu.Lock() // it does not answer yet
		if err := c.AddSection(clusterOf("east", east)); err != nil {
			t.Fatal(err)
		}
		if s := sectionHealth(t, c.Health(), "east"); s.Synced {
			t.Errorf("the new one is synced before it was read: %s", s)
		}
		east.mu.Unlock()
		synctest.Wait()
		sink.wantHeard(t, "+east/a1 east@1 north@1 south@2")
		if err := c.RemoveSection("south"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		sink.wantHeard(t, "-south/a -south/b east@1 north@1")
		if len(removed) != 2 || c.Len() != 2 || len(seen.state()) != 2 {
			t.Errorf("removed %q, %d objects, the subscriber has %d", removed, c.Len(), len(seen.state()))
		}
		watches := sectionHealth(t, c.Health(), "north").Watches
		south.put("south/c", "")
		east.put("east/b", "")
		north.remove("north/a")
		synctest.Wait()
		again := sectionHealth(t, c.Health(), "north").Watches - watches
		if _, ok := c.Get("south/c"); ok || c.Len() != 2 || again != 0 {
			t.Errorf("%d objects, the north was watched %d times more", c.Len(), again)
		}
		if err := c.AddSection(clusterOf("south", south)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c.Len() != 5 || len(seen.state()) != 5 || len(sink.state()) != 5 || !c.Health().Synced {
			t.Errorf("%d objects of 5, the subscriber has %d, the sink %d: %s", c.Len(), len(seen.state()), len(sink.state()), c.Health())
		}
		for _, name := range []string{"north", "south", "east"} {
			if err := c.RemoveSection(name); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if c.Len() != 0 || len(seen.state()) != 0 || len(sink.state()) != 0 || len(c.Health().Sections) != 0 {
			t.Errorf("%d objects without a section, the subscriber has %d, the sink %d", c.Len(), len(seen.state()), len(sink.state()))
		}
	})
}

// The counters of Health never decrease: a monitoring system takes that for a restart, and
// counts everything again.
func TestCountsOutliveSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newRemote("one/a"), newRemote("two/a", "two/b")
		c := fleetOf(t, map[string]*remote{"one": one, "two": two}, Options[*entry]{}).start()
		settle()
		two.put("two/a", "")
		two.fail(Because(ReasonRefused, 0, errUnreachable))
		settle()
		two.fail(nil)
		settle()
		counts := func() string {
			h := c.Health()
			return fmt.Sprint(h.Events, h.Watches, h.Lists, h.AllFailures, h.Rewinds, h.Damage.Found, h.Damage.Repaired)
		}
		before := counts()
		if h := c.Health(); h.Events == 0 || h.AllFailures == 0 || h.Lists[causeStart] != 2 {
			t.Fatalf("the test counts nothing: %+v", h)
		}
		for _, name := range []string{"two", "one"} {
			if err := c.RemoveSection(name); err != nil {
				t.Fatal(err)
			}
			if after := counts(); after != before {
				t.Errorf("without %s health counts %s, before it was %s", name, after, before)
			}
		}
		_ = c.stop()
	})
}

// A replica of one section finds the objects of another section on its disk, as after a cluster
// was replaced. They are removed.
func TestTheOnlySectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east, west := newRemote("east/a"), newRemote("west/a")
		disk, sink := loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
		opts := Options[*entry]{Sinks: []Sink[*entry]{disk, sink}}
		c := fleetOf(t, map[string]*remote{"east": east}, opts).start()
		settle()
		_ = c.stop()
		c = fleetOf(t, map[string]*remote{"west": west}, opts).start()
		settle()
		if c.Len() != 1 {
			t.Errorf("the copy has %d objects, and one is there", c.Len())
		}
		disk.wantState(t, west)
		sink.wantState(t, west)
		_ = c.stop()
	})
}

// shardedRemote is a remote that gives one shard of its objects.
type shardedRemote struct {
	*remote
	dropped int64
}

func (s shardedRemote) Shard() ShardReader { return fixedShard{s.dropped} }

// fixedShard is a part that never changes.
type fixedShard struct{ dropped int64 }

func (fixedShard) Open(func())                    {}
func (fixedShard) Begin() (func(Meta) bool, bool) { return nil, false }
func (fixedShard) Taken()                         {}
func (fixedShard) Close()                         {}
func (s fixedShard) Health() ShardHealth          { return ShardHealth{Name: "0 of 4", Dropped: s.dropped} }

// The dropped objects of other shards are counted in the same way.
func TestDroppedObjectsOutliveSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fleetOf(t, map[string]*remote{"one": newRemote("one/a")}, Options[*entry]{}).start()
		for i, name := range []string{"two", "three"} {
			s := clusterOf(name, newRemote(name+"/a"))
			s.Source = shardedRemote{newRemote(name + "/a"), int64(10 * (i + 1))}
			if err := c.AddSection(s); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		for _, name := range []string{"one", "two"} {
			if err := c.RemoveSection(name); err != nil {
				t.Fatal(err)
			}
			if h := c.Health().Shard; h == nil || *h != (ShardHealth{Name: "0 of 4", Dropped: 30}) {
				t.Errorf("without %s the shard is %+v", name, h)
			}
		}
		if err := c.RemoveSection("three"); err != nil {
			t.Fatal(err)
		}
		if h := c.Health().Shard; h != nil {
			t.Errorf("without sections the shard is %+v", h)
		}
	})
}

func TestSectionChangesThatAreWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fleetOf(t, map[string]*remote{"north": newRemote("north/a")}, Options[*entry]{})
		wantText(t, c.RemoveSection("south"), `"pods" has no section "south"`)
		wantText(t, c.AddSection(clusterOf("north", newRemote())), `two sections are called "north"`)
		wantText(t, c.AddSection(sectionOf("south", newRemote())), "either all are or none")
		single := newCopy(t, newRemote(), Options[*entry]{})
		wantText(t, single.AddSection(sectionOf("south", newRemote())), "has one source for good")
		c.start()
		synctest.Wait()
		waited := make(chan error)
		go func() { waited <- c.WaitForKey(t.Context(), "north/a", "9") }()
		synctest.Wait()
		if err := c.RemoveSection("north"); err != nil {
			t.Error(err)
		}
		wantError(t, <-waited, ErrSectionRemoved, `"north"`)
		_ = c.stop()
		if err := c.AddSection(clusterOf("late", newRemote("late/a"))); err != nil || c.Len() != 0 {
			t.Errorf("a section after the end: %v, %d objects", err, c.Len())
		}
	})
}

// A sink keeps what it has of a section whose source is unreachable, and is compared once it is
// there.
func TestSinkKeepsAbsentSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, away := newRemote("here/a"), newRemote("away/a", "away/b")
		sink := listedSink{newFakeSink(SinkPolicy[*entry]{Name: "table"})}
		opts := Options[*entry]{Sinks: []Sink[*entry]{sink}}
		remotes := map[string]*remote{"here": here, "away": away}
		first := fleetOf(t, remotes, opts).start()
		synctest.Wait()
		_ = first.stop()
		away.remove("away/b")
		here.put("here/b", "")
		away.fail(errors.New("no route to host"))
		second := fleetOf(t, remotes, opts).start()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if has := sink.state(); len(has) != 4 {
			t.Errorf("the sink holds %v, want what it had of the absent one and all of the other", has)
		}
		if at := sink.positions.All(); len(at) != 2 {
			t.Errorf("the sink is at %v", at)
		}
		away.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if has := sink.state(); len(has) != 3 || has["away/b"] != nil || second.Len() != 3 {
			t.Errorf("the sink holds %v", has)
		}
	})
}

// Whatever comes, goes and changes, copy, subscriber and sink are what the present
// sections have.
func TestSectionsModel(t *testing.T) {
	for seed := range uint64(testsize.Of(20, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sectionsModel(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func sectionsModel(t *testing.T, random *rand.Rand) {
	all, present := map[string]*remote{}, map[string]bool{"s0": true}
	for i := range 5 {
		all[fmt.Sprintf("s%d", i)] = newRemote(fmt.Sprintf("s%d/a", i))
	}
	sink := listedSink{newFakeSink(SinkPolicy[*entry]{Name: "table"})}
	c := fleetOf(t, map[string]*remote{"s0": all["s0"]}, Options[*entry]{Sinks: []Sink[*entry]{sink}})
	seen := c.subscribe(SubscribeOptions{Bound: 3})
	c.start()
	for range 200 {
		name := fmt.Sprintf("s%d", random.IntN(len(all)))
		r, key := all[name], fmt.Sprintf("%s/%c", name, 'a'+random.IntN(4))
		switch random.IntN(8) {
		case 0:
			if err := c.AddSection(clusterOf(name, r)); (err == nil) == present[name] {
				t.Fatalf("adding %s, which is there: %v: %v", name, present[name], err)
			}
			present[name] = true
		case 1:
			if err := c.RemoveSection(name); (err == nil) != present[name] {
				t.Fatalf("removing %s, which is there: %v: %v", name, present[name], err)
			}
			delete(present, name)
		case 2:
			if _, ok := r.state()[Key(key)]; ok {
				r.remove(key)
			}
		case 3:
			r.fail(errors.New("away"))
		case 4:
			r.fail(nil)
		case 5:
			time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
		default:
			r.put(key, fmt.Sprint(random.IntN(100)))
		}
	}
	for _, r := range all {
		r.fail(nil)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	want := map[Key]*entry{}
	for name := range present {
		maps.Copy(want, all[name].state())
	}
	equal := func(a, b *entry) bool { return *a == *b }
	if has := maps.Collect(c.All()); !maps.EqualFunc(has, want, equal) {
		t.Errorf("the copy has %v, want %v", has, want)
	}
	if has := seen.state(); !maps.EqualFunc(has, want, equal) {
		t.Errorf("the subscriber has %v, want %v", has, want)
	}
	if has := sink.state(); !maps.EqualFunc(has, want, equal) {
		t.Errorf("the sink has %v, want %v", has, want)
	}
	if h := c.Health(); len(h.Sections) != len(present) || !h.Synced || h.Err != nil {
		t.Errorf("%d sections are present: %s", len(present), h)
	}
}

// A store that refuses the deletes of a section keeps its objects. The removal can be made again
// once the store works, and then subscribers and sinks are told as after any removal; or a section of
// the same keys takes the objects over, and finds out which of them are gone.
func TestRemovalThatTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		north, south := newRemote("north/a"), newRemote("south/a", "south/b")
		sink := newFakeSink(SinkPolicy[*entry]{Name: "disk"})
		c := fleetOf(t, map[string]*remote{"north": north, "south": south}, Options[*entry]{Sinks: []Sink[*entry]{sink}})
		seen := c.subscribe(SubscribeOptions{})
		c.start()
		settle()
		full := errors.New("disk full")
		refuse := func(err error) {
			c.store.mu.Lock()
			defer c.store.mu.Unlock()
			c.store.refuse = func(changes []Change[*entry]) error {
				if slices.ContainsFunc(changes, func(change Change[*entry]) bool { return change.Removed }) {
					return err
				}
				return nil
			}
		}
		counted := c.Health().Events + c.Health().Watches
		remains := func(want int, when string) {
			t.Helper()
			settle()
			if c.Len() != want || len(seen.state()) != want || len(sink.state()) != want {
				t.Errorf("%s there are %d objects, the subscriber has %d, the sink %d; want %d", when, c.Len(), len(seen.state()), len(sink.state()), want)
			}
			if n := c.Health().Events + c.Health().Watches; n < counted {
				t.Errorf("%s health counts %d, before it was %d", when, n, counted)
			}
		}
		refuse(full)
		for range 2 {
			wantError(t, c.RemoveSection("south"), full, `the objects of the section "south"`)
			remains(3, "after a refusal")
		}
		if len(c.Health().Sections) != 1 {
			t.Errorf("the sections are %v", c.Health().Sections)
		}
		refuse(nil)
		if err := c.RemoveSection("south"); err != nil {
			t.Error(err)
		}
		remains(1, "after the removal")
		wantText(t, c.RemoveSection("south"), `has no section "south"`)

		if err := c.AddSection(clusterOf("south", south)); err != nil {
			t.Fatal(err)
		}
		remains(3, "with the section again")
		refuse(full)
		wantError(t, c.RemoveSection("south"), full, `"south"`)
		south.remove("south/b")
		part := clusterOf("part", newRemote("south/a/x"))
		part.Prefix = "south/a"
		wantText(t, c.AddSection(part), `objects of the removed section "south" ("south/") could not be deleted`)
		if err := c.AddSection(clusterOf("south", south)); err != nil {
			t.Fatal(err)
		}
		remains(2, "with a section that has one object less")
		refuse(nil)
		if err := c.RemoveSection("south"); err != nil {
			t.Error(err)
		}
		remains(1, "without the section")
		_ = c.stop()
	})
}
