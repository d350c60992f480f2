package cache

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	upstream "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// expiringText is everything that can be seen of a store of queueObjects.
func expiringText(s Store) string {
	objects, keys := s.List(), s.ListKeys()
	slices.SortFunc(objects, func(a, b any) int { return a.(queueObject).Val - b.(queueObject).Val })
	slices.Sort(keys)
	text := fmt.Sprintln(objects, keys, s.LastStoreSyncResourceVersion())
	for _, name := range []string{"a", "b", "c"} {
		obj, exists, err := s.GetByKey(name)
		text += fmt.Sprintln(obj, exists, err)
		obj, exists, err = s.Get(queueObject{Name: name})
		text += fmt.Sprintln(obj, exists, err)
	}
	return text
}

func TestExpirationLikeClientGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
		ourGone, theirGone := make(chan string, 1000), make(chan string, 1000)
		ours := NewFakeExpirationStore(queueObjectKey, ourGone, &TTLPolicy{TTL: 3 * time.Second, Clock: clock}, clock)
		theirs := upstream.NewFakeExpirationStore(queueObjectKey, theirGone, &upstream.TTLPolicy{TTL: 3 * time.Second, Clock: clock}, clock)
		val := 0
		object := func(t *rapid.T) any {
			val++
			return queueObject{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), val}
		}
		both := func(do func(Store) error) func() {
			return func() {
				if got, want := fmt.Sprint(do(ours)), fmt.Sprint(do(theirs)); got != want {
					t.Fatalf("error %s, client-go gives %s", got, want)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add":    func(t *rapid.T) { o := object(t); both(func(s Store) error { return s.Add(o) })() },
			"update": func(t *rapid.T) { o := object(t); both(func(s Store) error { return s.Update(o) })() },
			"delete": func(t *rapid.T) { o := object(t); both(func(s Store) error { return s.Delete(o) })() },
			"replace": func(t *rapid.T) {
				list := []any{object(t), object(t)}
				both(func(s Store) error { return s.Replace(slices.Clone(list), fmt.Sprint(val)) })()
			},
			"nameless": func(*rapid.T) {
				both(func(s Store) error {
					_, _, err := s.Get(42)
					return errors.Join(err, s.Add(42), s.Delete(42), s.Replace([]any{42}, "1"), s.Resync())
				})()
			},
			"bookmark": func(*rapid.T) { val++; ours.Bookmark(fmt.Sprint(val)); theirs.Bookmark(fmt.Sprint(val)) },
			"wait":     func(t *rapid.T) { clock.Step(time.Duration(rapid.IntRange(0, 2).Draw(t, "seconds")) * time.Second) },
			"read": func(t *rapid.T) {
				if diff := cmp.Diff(expiringText(theirs), expiringText(ours)); diff != "" {
					t.Fatalf("(-client-go +ours):\n%s", diff)
				}
				if len(ourGone) != len(theirGone) {
					t.Fatalf("%d expired, %d in client-go's", len(ourGone), len(theirGone))
				}
			},
		})
	})
}

func TestTTLStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, forever := NewTTLStore(queueObjectKey, time.Minute), NewTTLStore(queueObjectKey, 0)
		for _, store := range []Store{s, forever} {
			if err := store.Add(queueObject{"a", 1}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if got := fmt.Sprint(s.List()); got != "[{a 1}]" {
			t.Errorf("at its age limit: %s", got)
		}
		time.Sleep(time.Nanosecond)
		if got := fmt.Sprint(s.ListKeys(), s.List(), s.ListKeys()); got != "[a] [] []" {
			t.Errorf("after its age limit: %s", got)
		}
		time.Sleep(1000 * time.Hour)
		if got := fmt.Sprint(forever.List()); got != "[{a 1}]" {
			t.Errorf("without an age limit: %s", got)
		}
	})
}

func TestFakeExpirationStoreWithoutChannel(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	s := NewFakeExpirationStore(queueObjectKey, nil, &TTLPolicy{TTL: 1, Clock: clock}, clock)
	_ = s.Add(queueObject{"a", 1})
	clock.Step(2)
	if got := fmt.Sprint(s.List(), s.ListKeys()); got != "[] []" {
		t.Errorf("got %s", got)
	}
}
