package tarn

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// countingStore counts how often it is asked for an object.
type countingStore struct {
	*plainStore
	gets int
}

func (s *countingStore) Get(key Key) (*entry, bool) {
	s.gets++
	return s.plainStore.Get(key)
}

// describing counts how often it is asked to describe an object.
type describing struct {
	*remote
	times int
}

func (d *describing) Describe(e *entry) (Meta, error) {
	d.times++
	return d.remote.Describe(e)
}

// A relist asks the store once for each item, and describes it and what is held once,
// whether it is unchanged, changed, or compared by content.
func TestRelistAsksOnce(t *testing.T) {
	const objects = 50
	for _, test := range []struct {
		name               string
		compare, changeAll bool
	}{{"unchanged", false, false}, {"changed", false, true}, {"compared by content", true, false}, {"compared by content, and changed", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &describing{remote: newRemote()}
				put := func(text string) {
					for i := range objects {
						source.put(fmt.Sprint("o", i), text)
					}
				}
				put("a")
				store := &countingStore{plainStore: newPlainStore()}
				r, err := NewReflector[*entry](source, store, Options[*entry]{Name: "entries"})
				if err != nil {
					t.Fatal(err)
				}
				take := func() {
					pass, err := r.fetch(t.Context())
					if err == nil {
						err = pass.Commit(t.Context())
					}
					if err != nil {
						t.Fatal(err)
					}
					pass.Close()
				}
				take()
				if test.changeAll {
					put("b")
				}
				store.gets, source.times = 0, 0
				r.next.afresh = test.compare
				take()
				if store.gets != objects || source.times > 2*objects {
					t.Errorf("%d objects were looked up %d times and described %d times", objects, store.gets, source.times)
				}
			})
		})
	}
}
