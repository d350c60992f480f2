package tarn

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// inMemory is a store whose objects can be found as they were written.
type inMemory struct{ *plainStore }

func (s inMemory) Held(key Key) (any, bool) { return s.Get(key) }

// inFront is a store before another.
type inFront struct{ ReadStore[*entry] }

func (f inFront) Unwrap() ReadStore[*entry] { return f.ReadStore }

// A source learns where its objects are held, if they are in memory and nobody has
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
					sections := []Section[*entry]{{Name: "a", Source: section, Prefix: ""}}
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
						synctest.Wait()
					}
					cancel()
					running.Wait()
					for _, source := range []*asked{whole, section, bare} {
						if len(source.questions) == 0 || slices.ContainsFunc(source.questions, func(q question) bool { return q.held != test.want }) {
							t.Errorf("told %v, should be %v", source.questions, test.want)
						}
					}
				})
			})
		}
	}
}
