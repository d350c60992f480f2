package tarn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

// maintained is a remote that keeps the [Copy] it is given, as a source does whose
// objects share memory.
type maintained struct {
	*remote
	// single says that it can read one object.
	single bool

	mu    sync.Mutex
	held  Copy[*entry]
	ended bool
	// reads are the keys that were asked for.
	reads []Key
}

func (m *maintained) Maintain(ctx context.Context, held Copy[*entry]) {
	m.mu.Lock()
	m.held = held
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
}

func (m *maintained) List(ctx context.Context, q ListQuery) (Page[*entry], error) {
	page, err := m.remote.List(ctx, q)
	if q.Key == "" {
		return page, err
	}
	m.mu.Lock()
	m.reads = append(m.reads, q.Key)
	m.mu.Unlock()
	if m.single {
		all := page.Items
		page.Items = nil
		for _, e := range all {
			if Key(e.name) == q.Key {
				page.Items = append(page.Items, e)
			}
		}
	}
	return page, err
}

func (m *maintained) repair(damaged ...Damage) {
	m.mu.Lock()
	held := m.held
	m.mu.Unlock()
	held.Repair(damaged)
}

// damage writes to an object of the store, as a program does by mistake.
func (s *plainStore) damage(key Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.objects[key]
	if ok {
		wrong := *held
		wrong.text += " but wrong"
		s.objects[key] = &wrong
	}
	return ok
}

// newMaintained starts a replica of a maintained remote.
func newMaintained(t *testing.T, m *maintained, opts Options[*entry]) *copying {
	t.Helper()
	c := &copying{t: t, remote: m.remote, store: newPlainStore(), ended: make(chan error, 1)}
	opts.Name = "entries"
	var err error
	if c.Replica, err = NewReplica[*entry](m, c.store, opts); err != nil {
		t.Fatal(err)
	}
	c.ctx, c.cancel = cancelable(t)
	c.start()
	if err := c.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c
}

// A damaged object is reported, read again by itself, and sent to subscribers; nothing
// else is read or sent.
func TestRepairOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maintained{remote: newRemote("a", "b", "c"), single: true}
		var reported []Damage
		c := newMaintained(t, m, Options[*entry]{OnDamage: func(_ context.Context, d Damage) { reported = append(reported, d) }})
		heard := c.subscribe(SubscribeOptions{}, func(Change[*entry]) {})
		synctest.Wait()
		c.store.damage("b")
		wrong, _ := c.Get("b")
		heard.mu.Lock()
		heard.has["b"] = wrong // it is the same object in a real store
		heard.mu.Unlock()
		m.repair(Damage{Key: "b", Field: "text"})
		time.Sleep(time.Second)
		if got, _ := c.Get("b"); got.text != "" {
			t.Errorf("b is %q", got.text)
		}
		heard.wantHeard("*a1 *b2 *c3 | ~b2>b2")
		if len(m.reads) != 1 || m.reads[0] != "b" {
			t.Errorf("read %v, want b", m.reads)
		}
		h := c.Health()
		if d := h.Damage; d.Found != 1 || d.Repaired != 1 || d.Waiting != 0 || len(d.Recent) != 1 || !d.Recent[0].Repaired {
			t.Errorf("health %+v", d)
		}
		if len(reported) != 1 || reported[0].Key != "b" || reported[0].Field != "text" {
			t.Errorf("reported %+v", reported)
		}
		if h.Lists["start"] != 1 || len(h.Lists) != 1 || h.Watches != 1 {
			t.Errorf("lists %v, watches %d: the watch must go on", h.Lists, h.Watches)
		}
		if v := m.put("a", "later"); c.WaitFor(t.Context(), v) != nil {
			t.Error("the watch does not go on")
		}
	})
}

// A source that cannot read one object is not asked for each.
func TestRepairFromAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maintained{remote: newRemote("a", "b", "c", "d")}
		c := newMaintained(t, m, Options[*entry]{OnDamage: func(context.Context, Damage) {}})
		for _, key := range []Key{"a", "b", "d"} {
			c.store.damage(key)
		}
		m.repair(Damage{Key: "a"}, Damage{Key: "b"}, Damage{Key: "d"})
		time.Sleep(time.Second)
		if got := c.store.state(); !maps.Equal(got, m.state()) {
			t.Errorf("the store has %v", got)
		}
		if len(m.reads) != 1 {
			t.Errorf("read %v, want one read", m.reads)
		}
	})
}

// Many damaged objects are repaired by one read of the whole state, at most once in ten
// minutes.
func TestRepairMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 3 * repairReads {
			names = append(names, fmt.Sprint("object-", i))
		}
		m := &maintained{remote: newRemote(names...), single: true}
		c := newMaintained(t, m, Options[*entry]{OnDamage: func(context.Context, Damage) {}})
		all := func() {
			var damaged []Damage
			for _, name := range names {
				c.store.damage(Key(name))
				damaged = append(damaged, Damage{Key: Key(name)})
			}
			m.repair(damaged...)
		}
		want := func(when string, lists int64, repaired bool) {
			t.Helper()
			got := c.Health().Lists["damaged"]
			if done := maps.Equal(c.store.state(), m.state()); got != lists || done != repaired {
				t.Errorf("%s: %d lists, want %d; repaired %v, want %v", when, got, lists, done, repaired)
			}
		}
		all()
		time.Sleep(time.Minute)
		want("the first time", 1, true)
		all()
		time.Sleep(time.Minute)
		want("a minute later", 1, false)
		time.Sleep(repairLists)
		want("ten minutes later", 2, true)
		if len(m.reads) > 0 {
			t.Errorf("%d single reads", len(m.reads))
		}
	})
}

// Damage of one field is reported once a minute, however much there is.
func TestRepairReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maintained{remote: newRemote("a", "b", "c"), single: true}
		reported := map[string]int{}
		c := newMaintained(t, m, Options[*entry]{OnDamage: func(_ context.Context, d Damage) { reported[d.Field]++ }})
		for range 12 {
			m.repair(Damage{Key: "a", Field: "x"}, Damage{Key: "b", Field: "x"}, Damage{Key: "c", Field: "y", Repaired: true})
			time.Sleep(10 * time.Second)
		}
		if reported["x"] != 2 || reported["y"] != 2 {
			t.Errorf("reported %v in two minutes, want two of each", reported)
		}
		if d := c.Health().Damage; d.Found != 36 || d.Repaired != 36 || len(d.Recent) != 36 {
			t.Errorf("found %d, repaired %d, recent %d", d.Found, d.Repaired, len(d.Recent))
		}
	})
}

// Without a handler, damage reaches the error handler in words that say what to do.
func TestRepairReachesOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maintained{remote: newRemote("a"), single: true}
		var errs []error
		newMaintained(t, m, Options[*entry]{OnError: func(_ context.Context, err error) { errs = append(errs, err) }})
		m.repair(Damage{Key: "a", Field: "spec.replicas"})
		time.Sleep(time.Second)
		if len(errs) != 1 || !errors.Is(errs[0], ErrStrayWrite) || errs[0].Error() != "entries: a, field spec.replicas: "+ErrStrayWrite.Error() {
			t.Errorf("errors %v", errs)
		}
	})
}

// Maintenance ends with the replica.
func TestMaintainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maintained{remote: newRemote("a")}
		c := newMaintained(t, m, Options[*entry]{})
		_ = c.stop()
		if !m.ended {
			t.Error("Run has returned, and the source's own work continues")
		}
	})
}

// The work of a source is done though another one is around it.
func TestMaintainWrapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &maintained{remote: newRemote("a", "b"), single: true}
		replica, err := NewReplicaOf([]Section[*entry]{
			{Name: "a", Source: m, Prefix: "a"},
			{Name: "others", Source: newRemote(), Prefix: "b"},
		}, newPlainStore(), Options[*entry]{OnBad: func(context.Context, BadObject) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = replica.Run(ctx) }()
		synctest.Wait()
		m.mu.Lock()
		if m.held == nil {
			t.Error("nobody maintains")
		}
		m.mu.Unlock()
		cancel()
		<-replica.Done()
	})
}

// Whatever happens to source and connection meanwhile, damaged objects are right in the
// end, and subscribers were notified.
func TestRepairAmidTroubles(t *testing.T) {
	for seed := range uint64(testsize.Of(200, 30)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { repairAmidTroubles(t, rand.New(rand.NewPCG(seed, 11))) })
		})
	}
}

func repairAmidTroubles(t *testing.T, random *rand.Rand) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	m := &maintained{remote: newRemote(names...), single: random.IntN(2) == 0}
	c := newMaintained(t, m, Options[*entry]{
		WatchList: random.IntN(2) == 0,
		OnError:   func(context.Context, error) {},
		OnDamage:  func(context.Context, Damage) {},
	})
	for range 60 {
		name := names[random.IntN(len(names))]
		switch n := random.IntN(100); {
		case n < 30:
			m.put(name, fmt.Sprint(n))
		case n < 40:
			if _, ok := m.state()[Key(name)]; ok {
				m.remove(name)
			}
		case n < 70:
			if c.store.damage(Key(name)) {
				m.repair(Damage{Key: Key(name)})
			}
		case n < 75:
			m.compact()
		case n < 80:
			m.hangUp()
		case n < 90:
			m.fail(troubles[random.IntN(len(troubles))])
		default:
			m.fail(nil)
		}
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
	m.fail(nil)
	time.Sleep(10 * time.Minute)
	if got, want := c.store.state(), m.state(); !maps.Equal(got, want) {
		t.Errorf("the store has\n%v, the source\n%v\n%v", got, want, c.Health())
	}
	if d := c.Health().Damage; d.Waiting != 0 || d.Found != d.Repaired {
		t.Errorf("found %d, repaired %d, waiting %d", d.Found, d.Repaired, d.Waiting)
	}
}
