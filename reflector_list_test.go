package tarn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// streaming is a source that gives the items of a list one by one, except for the last
// one; after that it may fail.
type streaming struct {
	*remote
	given int
	fail  error
}

func (s *streaming) StreamList(ctx context.Context, q ListQuery, take func([]*entry)) (Page[*entry], error) {
	page, err := s.List(ctx, q)
	if err != nil {
		return page, err
	}
	for len(page.Items) > 1 {
		take(page.Items[:1:1])
		page.Items = page.Items[1:]
		s.given++
	}
	return page, s.fail
}

// A list that is streamed leads to the same store as one that is not, in pages or
// not; a list that fails at its end changes nothing.
func TestStreamedList(t *testing.T) {
	for _, sections := range []bool{false, true} {
		t.Run(fmt.Sprintf("sections %v", sections), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &streaming{remote: newRemote("a1", "a2", "a3", "a4")}
				store := newPlainStore()
				opts := Options[*entry]{Name: "entries", OnError: func(context.Context, error) {}}
				replica, err := NewReplica[*entry](source, store, opts)
				if sections {
					replica, err = NewReplicaOf([]Section[*entry]{{Name: "a", Source: source, Prefix: "a"}}, store, opts)
				}
				if err != nil {
					t.Fatal(err)
				}
				r := replica.present()[0].reflector
				read := func() error {
					pass, err := r.fetch(t.Context())
					if err != nil {
						return err
					}
					return pass.Commit(t.Context())
				}
				if err := read(); err != nil || store.Len() != 4 || source.given != 3 {
					t.Fatalf("%d objects, %d given while the list arrived: %v", store.Len(), source.given, err)
				}
				source.put("a2", "changed")
				source.remove("a3")
				source.put("a5", "")
				source.fail = errors.New("the connection broke")
				if err := read(); !errors.Is(err, source.fail) || store.Len() != 4 {
					t.Fatalf("%d objects after a broken list: %v", store.Len(), err)
				}
				source.fail = nil
				if err := read(); err != nil || store.Len() != 4 {
					t.Fatalf("%d objects: %v", store.Len(), err)
				}
				for name, want := range source.objects {
					if held, _ := store.Get(Key(name)); held != want {
						t.Errorf("%s is %v, want %v", name, held, want)
					}
				}
			})
		})
	}
}
