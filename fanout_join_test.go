package tarn

import (
	"context"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// snapshotStore is a plain store that takes snapshots. walked is called for each object
// of a snapshot.
type snapshotStore struct {
	*plainStore
	walked func()
}

func (s *snapshotStore) TakeSnapshot() Snapshot[*entry] {
	frozen := &plainStore{objects: s.state(), version: s.Version()}
	return plainSnapshot{frozen, s.walked}
}

type plainSnapshot struct {
	*plainStore
	walked func()
}

func (plainSnapshot) Close() {}

func (s plainSnapshot) All() iter.Seq2[Key, *entry] {
	return func(yield func(Key, *entry) bool) {
		for key, object := range s.plainStore.All() {
			s.walked()
			if !yield(key, object) {
				return
			}
		}
	}
}

// A subscriber that takes long to get what is there does not hold up the writer, and
// sees what was written meanwhile after it.
func TestJoinDoesNotHoldUpTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		walking, goOn := make(chan struct{}, 100), make(chan struct{})
		r := newRemote("a", "b")
		c := newCopyIn(t, r, func(s *plainStore) ReadStore[*entry] {
			return &snapshotStore{plainStore: s, walked: func() { walking <- struct{}{}; <-goOn }}
		}, Options[*entry]{})
		c.start()
		synctest.Wait()

		var seen []string
		joined := make(chan *Subscription[*entry])
		go func() {
			s, err := c.Subscribe(func(ch Change[*entry]) { seen = append(seen, showChange(ch)) }, SubscribeOptions{})
			if err != nil {
				t.Error(err)
			}
			joined <- s
		}()
		<-walking
		r.put("a", "later")
		r.remove("b")
		v := r.put("c", "new")
		if err := c.WaitFor(within(t, time.Second), v); err != nil {
			t.Errorf("while a subscriber joins, the copy does not follow: %v", err)
		}
		close(goOn)
		s := <-joined
		<-s.Synced()
		synctest.Wait()
		want := []string{"add a@1 (initial)", "add b@2 (initial)", "update a", "delete b", "add c"}
		if !slices.Equal(seen, want) {
			t.Errorf("the subscriber saw %q, not %q", seen, want)
		}
	})
}

func showChange(c Change[*entry]) string {
	names := map[ChangeType]string{Add: "add ", Update: "update ", Delete: "delete ", Sync: "sync "}
	s := names[c.Type] + string(c.Key)
	if c.Initial {
		s += "@" + string(c.Version) + " (initial)"
	}
	return s
}

// restoringStore takes as long as the test wants to load its content.
type restoringStore struct {
	*snapshotStore
	load chan struct{}
}

func (s restoringStore) Restore(context.Context) (Kept, error) {
	<-s.load
	s.objects["a"] = &entry{name: "a", version: "1"}
	return Kept{Positions: []Position{{Version: "1", Complete: true}}}, nil
}

// A subscriber can join while the content is loaded from disk, and gets it then.
func TestJoinWhileTheContentIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := make(chan struct{})
		c := newCopyIn(t, newRemote("a"), func(s *plainStore) ReadStore[*entry] {
			return restoringStore{&snapshotStore{plainStore: s, walked: func() {}}, load}
		}, Options[*entry]{})
		early := c.subscribe(SubscribeOptions{})
		c.start()
		synctest.Wait()
		late := c.subscribe(SubscribeOptions{}, func(Change[*entry]) {})
		close(load)
		<-c.Synced()
		synctest.Wait()
		for name, a := range map[string]*audience{"early": early, "late": late} {
			if keys := slices.Collect(maps.Keys(a.has)); !slices.Equal(keys, []Key{"a"}) {
				t.Errorf("the %s subscriber has %q", name, keys)
			}
		}
	})
}

// A resync in the middle of changes delivers no state older than the last one, and lets
// updates pass.
func TestResyncLetsUpdatesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote()
		for i := range 3 * resyncBatch {
			r.put(string(rune('a'+i%26))+time.Duration(i).String(), "x")
		}
		c := newCopyIn(t, r, func(s *plainStore) ReadStore[*entry] { return &snapshotStore{s, func() {}} }, Options[*entry]{ResyncPeriod: time.Minute})
		batches := 0
		a := c.subscribe(SubscribeOptions{Syncs: func() bool { batches++; return true }})
		c.start()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if batches < 3 {
			t.Errorf("%d objects were offered again under %d locks", len(a.has), batches)
		}
	})
}

// A resync while a subscriber joins does not break it, although it has nothing to offer
// to a subscriber that does not ask for it.
func TestJoinDuringResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		walking, goOn := make(chan struct{}, 100), make(chan struct{})
		c := newCopyIn(t, newRemote("a"), func(s *plainStore) ReadStore[*entry] {
			return &snapshotStore{plainStore: s, walked: func() { walking <- struct{}{}; <-goOn }}
		}, Options[*entry]{})
		c.start()
		synctest.Wait()
		joined := make(chan *Subscription[*entry])
		go func() {
			s, err := c.Subscribe(func(Change[*entry]) {}, SubscribeOptions{})
			if err != nil {
				t.Error(err)
			}
			joined <- s
		}()
		<-walking
		c.fanout.offerAgain([]Key{"a"})
		close(goOn)
		<-(<-joined).Synced()
	})
}
