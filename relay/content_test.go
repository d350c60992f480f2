package relay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/testsize"
)

// TestReplacedObjects compares with, which relies on order, with a map.
func TestReplacedObjects(t *testing.T) {
	var all []*apiserver.Object
	for i := range 20 {
		all = append(all, objectOf(t, fmt.Sprint("p", i), 1))
	}
	slices.SortFunc(all, byKey)
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfDistinct(rapid.SampledFrom(all), (*apiserver.Object).Key)
		objects := slices.SortedFunc(slices.Values(some.Draw(t, "objects")), byKey)
		replaced, want := priorObjects{}, map[string]*apiserver.Object{}
		for _, o := range objects {
			want[o.Key()] = o
		}
		for _, o := range some.Draw(t, "replaced") {
			replaced[o.Key()], want[o.Key()] = o, o
			if rapid.Bool().Draw(t, "removed") {
				replaced[o.Key()] = nil
				delete(want, o.Key())
			}
		}
		before := slices.Clone(objects)
		got := with(objects, replaced)
		for _, o := range got {
			if want[o.Key()] != o {
				t.Fatalf("%s is there", o.Key())
			}
		}
		if len(got) != len(want) || !slices.IsSortedFunc(got, byKey) || !slices.Equal(objects, before) {
			t.Fatalf("%d objects, wanted %d", len(got), len(want))
		}
	})
}

// TestPagesOfThePast reads what the second page of a list reads after something has changed. That
// must not sort all objects, which it once did under the lock that all requests need.
func TestPagesOfThePast(t *testing.T) {
	const many = 20_000
	s := &state{maxWait: time.Second, synced: true}
	for i := range many {
		s.content.objects = append(s.content.objects, objectOf(t, fmt.Sprint("p", i), int64(i+1)))
	}
	slices.SortFunc(s.content.objects, byKey)
	s.version, s.log.floor = many, many
	for i := range 100 {
		o := objectOf(t, fmt.Sprint("p", 100*i), many+int64(i)+1)
		s.log.append(&apiserver.Event{Type: watch.Modified, Version: o.Version(), Object: o, Old: s.content.set(o.Key(), o)})
		s.version = o.Version()
	}
	toSort, toRead := time.Hour, time.Hour
	for range 5 {
		sorted := append(slices.Clone(s.content.objects[:many-100]), s.content.objects[:100]...)
		began := time.Now()
		slices.SortFunc(sorted, byKey)
		toSort = min(toSort, time.Since(began))
		began = time.Now()
		page, err := s.List(context.Background(), "", apiserver.At{Match: apiserver.Exact, Version: many})
		toRead = min(toRead, time.Since(began))
		if err != nil || len(page.Objects) != many || slices.ContainsFunc(page.Objects, func(o *apiserver.Object) bool { return o.Version() > many }) {
			t.Fatal(len(page.Objects), err)
		}
	}
	if toRead > toSort/2 {
		t.Errorf("it takes %v, and to sort the objects %v", toRead, toSort)
	}
}

func byKey(a, b *apiserver.Object) int { return cmp.Compare(a.Key(), b.Key()) }

var builtinPods = sync.OnceValue(func() *apiserver.Resource {
	of, _ := apiserver.BuiltinResource(pods)
	return of
})

func objectOf(t *testing.T, name string, version int64) *apiserver.Object {
	t.Helper()
	of := builtinPods()
	p := pod(name, "x")
	p.ResourceVersion = fmt.Sprint(version)
	raw, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	o, err := of.NewObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestGapWithManyObjects has a gap after which most objects are new, in no order. Inserting them
// one by one took 17 s in the full size.
func TestGapWithManyObjects(t *testing.T) {
	many := testsize.Of(200_000, 2_000)
	s := &state{synced: true, version: 1}
	s.content.objects = []Object{objectOf(t, "p", 1)}
	gap := part{gap: true, to: int64(many) + 1}
	for i := range many {
		o := objectOf(t, fmt.Sprint("p", i), int64(i+2))
		gap.changes = append(gap.changes, tarn.Change[Object]{Type: tarn.Add, Key: tarn.Key(o.Key()), Object: o})
	}
	before := s.now("").Objects
	began := time.Now()
	s.applyGap(gap, began)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	after := s.now("").Objects
	if len(before) != 1 || len(after) != many+1 || !slices.IsSortedFunc(after, byKey) || len(s.log.events) != 1 {
		t.Errorf("%d objects before, %d after, %d events", len(before), len(after), len(s.log.events))
	}
}
