package tarn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

// corrupt writes into the store behind its replica's back, as a bug would: versions
// are right and content is not.
func (s *plainStore) corrupt(random *rand.Rand, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Key(names[random.IntN(len(names))])
	switch held, ok := s.objects[key]; {
	case !ok:
		s.objects[key] = &entry{name: string(key), uid: "made up", version: s.version, text: "made up"}
	case random.IntN(2) == 0:
		delete(s.objects, key)
	default:
		wrong := *held
		wrong.text += " but wrong"
		s.objects[key] = &wrong
	}
}

// TestRecheckRepairs spoils a store again and again amid writes and troubles, and
// asks for rechecks at random, from whatever state the replica is in. At the end
// the store equals the source, and nobody was asked more often than need be.
func TestRecheckRepairs(t *testing.T) {
	for seed := range uint64(testsize.Of(200, 30)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { repair(t, rand.New(rand.NewPCG(seed, 5))) })
		})
	}
}

func repair(t *testing.T, random *rand.Rand) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	source := newRemote(names[:random.IntN(len(names))]...)
	size := random.Int64N(4)
	c := newCopy(t, source, Options[*entry]{
		WatchList: random.IntN(2) == 0,
		PageSize:  func() int64 { return size },
	})
	asked := int64(0)
	ask := func() {
		asked++
		c.Recheck("spoiled")
	}
	if random.IntN(4) == 0 {
		ask()
	}
	c.start()
	for range 60 {
		name := names[random.IntN(len(names))]
		switch n := random.IntN(100); {
		case n < 40:
			source.put(name, fmt.Sprint(n))
		case n < 55:
			if _, ok := source.state()[Key(name)]; ok {
				source.remove(name)
			}
		case n < 70:
			c.store.corrupt(random, names)
			ask()
		case n < 75:
			source.compact()
		case n < 80:
			source.hangUp()
		case n < 90:
			source.fail(troubles[random.IntN(len(troubles))])
		default:
			source.fail(nil)
		}
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
	}
	source.fail(nil)
	c.store.corrupt(random, names)
	ask()
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	if got, want := c.store.state(), source.state(); !maps.EqualFunc(got, want, func(a, b *entry) bool { return *a == *b }) {
		t.Errorf("the store holds\n%v, the source\n%v", got, want)
	}
	if h := c.Health(); h.Err != nil || h.State != StateWatching || h.Lists["spoiled"] > asked || h.Lists["spoiled"] == 0 {
		t.Errorf("%s; %d rechecks were asked for, lists: %v", h, asked, h.Lists)
	}
}

// A read that is under way when a recheck is asked for is followed by another;
// what is asked for until that one begins is one request.
func TestRecheckWhileListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowSource{remote: newRemote("a", "b"), takes: 10 * time.Second}
		store := newPlainStore()
		r, err := NewReplica[*entry](slow, store, Options[*entry]{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := cancelable(t)
		go func() { _ = r.Run(ctx) }()
		time.Sleep(5 * time.Second)
		for range 5 {
			r.Recheck("")
		}
		time.Sleep(time.Minute)
		if h := r.Health(); h.Lists["start"] != 1 || h.Lists["recheck"] != 1 || len(h.Lists) != 2 {
			t.Errorf("lists: %v", h.Lists)
		}
		// One that is under way has perhaps passed what is wrong.
		r.Recheck("first")
		time.Sleep(8 * time.Second)
		r.Recheck("second")
		time.Sleep(time.Minute)
		if h := r.Health(); h.Lists["first"] != 1 || h.Lists["second"] != 1 || h.State != StateWatching {
			t.Errorf("%s; lists: %v", h, h.Lists)
		}
		cancel()
		<-r.Done()
		r.Recheck("too late")
	})
}

// slowSource takes its time to list.
type slowSource struct {
	*remote
	takes time.Duration
}

func (s *slowSource) List(ctx context.Context, q ListQuery) (Page[*entry], error) {
	if !pause(ctx, realClock{}, s.takes) {
		return Page[*entry]{}, context.Cause(ctx)
	}
	return s.remote.List(ctx, q)
}

// A caller that asks without end gets a list now and then, not one after the other.
func TestRecheckIsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopy(t, newRemote("a"), Options[*entry]{}).start()
		synctest.Wait()
		for range 600 {
			c.Recheck("again")
			time.Sleep(time.Second)
		}
		if n := c.Health().Lists["again"]; n < 5 || n > 60 {
			t.Errorf("%d lists in ten minutes", n)
		}
	})
}

func TestRecheckOfSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, north, _ := twoLakes(t, Options[*entry]{})
		c.start()
		synctest.Wait()
		random := rand.New(rand.NewPCG(1, 1))
		c.store.corrupt(random, []string{"north/a"})
		c.store.corrupt(random, []string{"south/b"})
		c.store.corrupt(random, []string{"south/x"})
		north.fail(errors.New("frozen over"))
		c.Recheck("spoiled")
		time.Sleep(time.Minute)
		if h := c.Health(); h.Sections[0].Lists["spoiled"] != 0 || h.Sections[1].Lists["spoiled"] != 1 {
			t.Errorf("lists: north %v, south %v", h.Sections[0].Lists, h.Sections[1].Lists)
		}
		north.fail(nil)
		time.Sleep(time.Minute)
		if h := c.Health(); h.Lists["spoiled"] != 2 || h.Err != nil {
			t.Errorf("%s; lists: %v", h, h.Lists)
		}
		for key, e := range c.All() {
			if e.text != "" {
				t.Errorf("%s is %q", key, e.text)
			}
		}
		if c.Len() != 4 {
			t.Errorf("%d objects of 4", c.Len())
		}
	})
}
