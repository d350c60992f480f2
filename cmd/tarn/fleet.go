package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// ship is what the fleet consists of.
type ship struct {
	name, state string
	version     tarn.Version
}

// fleet is a source in memory: a collection with a history of its latest changes,
// from which it can be watched.
type fleet struct {
	mu      sync.Mutex
	ships   map[string]ship
	version int
	history []tarn.Event[ship]
	// changed is closed and replaced at each change; dropped likewise when all
	// connections break.
	changed, dropped chan struct{}
}

var (
	names  = []string{"Albatros", "Bounty", "Calypso", "Dauntless", "Endurance", "Fram", "Gjøa", "Hector"}
	states = []string{"at anchor", "loading", "at sea", "in dock"}
)

// remembered is how many changes can be watched from; older versions expire.
const remembered = 32

func newFleet() *fleet {
	f := &fleet{ships: map[string]ship{}, changed: make(chan struct{}), dropped: make(chan struct{})}
	for _, name := range names[:4] {
		f.set(tarn.Added, ship{name: name, state: states[0]})
	}
	return f
}

// live changes the fleet twice a second and breaks the connections now and then.
func (f *fleet) live(ctx context.Context) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		f.change()
		if n%25 == 0 {
			f.drop()
		}
	}
}

func (f *fleet) change() {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := names[rand.N(len(names))]
	s, known := f.ships[name]
	switch {
	case !known:
		f.set(tarn.Added, ship{name: name, state: states[0]})
	case rand.N(4) == 0:
		f.set(tarn.Deleted, s)
	default:
		s.state = states[rand.N(len(states))]
		f.set(tarn.Modified, s)
	}
}

// set makes one change; the caller holds the lock or is alone.
func (f *fleet) set(t tarn.EventType, s ship) {
	f.version++
	s.version = tarn.Version(strconv.Itoa(f.version))
	if t == tarn.Deleted {
		delete(f.ships, s.name)
	} else {
		f.ships[s.name] = s
	}
	f.history = append(f.history, tarn.Event[ship]{Type: t, Object: s})
	f.history = f.history[max(0, len(f.history)-remembered):]
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fleet) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.dropped)
	f.dropped = make(chan struct{})
}

func (f *fleet) List(context.Context, tarn.ListQuery) (tarn.Page[ship], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	page := tarn.Page[ship]{Version: tarn.Version(strconv.Itoa(f.version))}
	for _, s := range f.ships {
		page.Items = append(page.Items, s)
	}
	return page, nil
}

func (f *fleet) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[ship], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := strconv.Atoi(string(q.From))
	if err != nil || from < f.version-len(f.history) {
		return nil, tarn.Because(tarn.Expired, 0, errors.New("version "+string(q.From)+" is no longer remembered"))
	}
	return &voyage{fleet: f, at: from, dropped: f.dropped}, nil
}

func (f *fleet) Describe(s ship) (tarn.Meta, error) {
	if s.name == "" {
		return tarn.Meta{}, errors.New("a ship without a name")
	}
	return tarn.Meta{Key: tarn.Key(s.name), Version: s.version}, nil
}

// voyage is one watch.
type voyage struct {
	fleet   *fleet
	at      int
	dropped chan struct{}
}

func (v *voyage) Next(ctx context.Context, buf []tarn.Event[ship]) (int, error) {
	for {
		v.fleet.mu.Lock()
		missing := v.fleet.version - v.at
		changed := v.fleet.changed
		if missing > len(v.fleet.history) {
			v.fleet.mu.Unlock()
			return 0, tarn.Because(tarn.Expired, 0, errors.New("the watch fell too far behind"))
		}
		n := copy(buf, v.fleet.history[len(v.fleet.history)-missing:])
		v.fleet.mu.Unlock()
		if n > 0 {
			v.at += n
			return n, nil
		}
		select {
		case <-changed:
		case <-v.dropped:
			return 0, io.EOF
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (v *voyage) Close() {}
