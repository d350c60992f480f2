package tarn

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inMemory is a store whose objects can be found as they were written.
type inMemory struct{ *plainStore }

func (s inMemory) Held(key Key) (any, bool) { return s.Get(key) }

// inFront is a store before another.
type inFront struct{ ReadStore[*entry] }

func (f inFront) Behind() ReadStore[*entry] { return f.ReadStore }

// asked is a source that notes where its objects are said to be held.
type asked struct {
	*remote
	mu   sync.Mutex
	held []Holder
}

func (a *asked) note(h Holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = append(a.held, h)
}

func (a *asked) List(ctx context.Context, q ListQuery) (Page[*entry], error) {
	a.note(q.Held)
	return a.remote.List(ctx, q)
}

func (a *asked) Watch(ctx context.Context, q WatchQuery) (Stream[*entry], error) {
	a.note(q.Held)
	return a.remote.Watch(ctx, q)
}

// A source is told where its objects are held, if they are in memory and nobody has
// made something else of them.
func TestSourcesKnowWhatIsHeld(t *testing.T) {
	store := inMemory{newPlainStore()}
	for name, test := range map[string]struct {
		store     ReadStore[*entry]
		transform func(*entry) (*entry, error)
		want      Holder
	}{
		"in memory":                 {store: store, want: store},
		"in memory, before another": {store: inFront{store}, want: store},
		"transformed":               {store: store, transform: func(e *entry) (*entry, error) { return e, nil }},
		"elsewhere":                 {store: newPlainStore()},
		"elsewhere, before another": {store: inFront{newPlainStore()}},
	} {
		for way, watchList := range map[string]bool{"list": false, "stream": true} {
			t.Run(name+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := Options[*entry]{WatchList: watchList, Transform: test.transform}
					whole := &asked{remote: newRemote("a")}
					replica, err := NewReplica[*entry](whole, test.store, opts)
					if err != nil {
						t.Fatal(err)
					}
					section := &asked{remote: newRemote("a")}
					sections := []Section[*entry]{{Name: "a", Source: section, Owns: func(Key) bool { return true }}}
					of, err := NewReplicaOf(sections, test.store, opts)
					if err != nil {
						t.Fatal(err)
					}
					bare := &asked{remote: newRemote("a")}
					reflector, err := NewReflector[*entry](bare, test.store, opts)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := cancelable(t)
					var running sync.WaitGroup
					for _, run := range []func(context.Context) error{replica.Run, of.Run, reflector.Run} {
						running.Go(func() { _ = run(ctx) })
						time.Sleep(time.Second)
					}
					cancel()
					running.Wait()
					for _, source := range []*asked{whole, section, bare} {
						if len(source.held) == 0 || slices.ContainsFunc(source.held, func(h Holder) bool { return h != test.want }) {
							t.Errorf("told %v, should be %v", source.held, test.want)
						}
					}
				})
			})
		}
	}
}
