package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
)

var corePods = schema.GroupResource{Resource: "pods"}

// noPast makes a server that refuses to show what was.
func noPast(_ int64, q tarn.ListQuery) error {
	if q.Exact {
		return apierrors.NewBadRequest("resourceVersionMatch is not known")
	}
	return nil
}

// A server without a past is compared at its latest state; concurrent changes are
// not differences, and the rest is found.
func TestWithoutExactVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		l.meddle = noPast
		r := l.once(Options{PageSize: 6})
		l.want(r, Equal, 0, 0, 0)
		if r.Exact || r.Skipped != 0 || r.Requests != 5 || !strings.Contains(r.Note, "does not show past versions") {
			t.Errorf("%s", r)
		}

		// What changes between the snapshot and the list.
		written := false
		l.meddle = func(n int64, q tarn.ListQuery) error {
			if !q.Exact && !written {
				written = true
				l.put(4, "later")
				l.put(100, "new")
				l.remove(5)
			}
			return noPast(n, q)
		}
		r = l.once(Options{PageSize: 6})
		l.want(r, Equal, 0, 0, 0)
		if r.Skipped != 0 || r.Objects != 20 || r.Listed != 20 {
			t.Errorf("%s", r)
		}

		l.meddle = noPast
		l.corrupt(keyOf(7), setText("wrong"))
		l.store.Remove(keyOf(8))
		held, _ := l.store.Get(keyOf(9))
		copied := held.DeepCopy()
		copied.SetName("made-up")
		_ = l.store.Put("n0/made-up", copied)
		r = l.once(Options{PageSize: 6})
		l.want(r, Different, 1, 1, 1)
	})
}

// Sections are at versions of their own.
func TestSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20, namespaces: []string{"n0", "n1", "n2"}})
		l.put(4, "second") // n1 is ahead of the others until their next bookmark
		if err := l.target.Replica.WaitForKey(t.Context(), keyOf(4), tarn.Version(l.server.Version())); err != nil {
			t.Fatal(err)
		}
		r := l.once(Options{PageSize: 4})
		l.want(r, Equal, 0, 0, 0)
		if r.Exact || r.Listed != 20 || !strings.Contains(r.Note, "several sections") {
			t.Errorf("%s", r)
		}
		l.corrupt(keyOf(4), setText("wrong"))
		l.store.Remove(keyOf(3))
		held, _ := l.store.Get(keyOf(8))
		copied := held.DeepCopy()
		copied.SetName("made-up")
		_ = l.store.Put("n2/made-up", copied)
		l.want(l.once(Options{}), Different, 1, 1, 1)
	})
}

// A server with an older version than the copy has gone back.
func TestServerWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := newLake(t, shape{objects: 20}), newLake(t, shape{objects: 10})
		l.target.Sources = other.target.Sources
		r := l.once(Options{})
		if r.Verdict != Different || !r.Behind || !strings.Contains(r.Note, "the server went back") {
			t.Errorf("%s", r)
		}
	})
}

// A copy that does not follow is neither equal nor different.
func TestCopyThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := newLake(t, shape{objects: 20}), newLake(t, shape{objects: 25})
		l.target.Sources = other.target.Sources
		l.meddle, other.meddle = noPast, noPast
		for i := range 20 { // what both have differs in uid and time only
			held, _ := other.store.Get(keyOf(i))
			_ = l.store.Put(keyOf(i), held)
		}
		r := l.once(Options{})
		l.want(r, Unknown, 0, 0, 0)
		if r.Undecided != 5 || !strings.Contains(r.Note, "not within 2m0s") {
			t.Errorf("%s", r)
		}
	})
}

// What cannot be read is not called missing.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		bad := &badSource{Source: l.target.Sources[0], keyed: true}
		l.target.Sources[0] = bad
		r := l.once(Options{})
		l.want(r, Unknown, 0, 0, 0)
		if r.Unreadable != 1 || r.Undecided != 0 {
			t.Errorf("%s", r)
		}
		bad.keyed = false
		r = l.once(Options{})
		l.want(r, Unknown, 0, 0, 0)
		if r.Unreadable != 1 || r.Undecided != 1 {
			t.Errorf("%s", r)
		}
	})
}

// badSource cannot read its first object.
type badSource struct {
	tarn.Source[object]
	keyed bool
}

func (b *badSource) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[object], error) {
	page, err := b.Source.List(ctx, q)
	if len(page.Items) > 0 {
		bad := tarn.BadObject{Err: errors.New("cannot be read")}
		if b.keyed {
			bad.Key = tarn.Key(page.Items[0].GetNamespace() + "/" + page.Items[0].GetName())
		}
		page.Bad, page.Items = []tarn.BadObject{bad}, page.Items[1:]
	}
	return page, err
}

// opaque is a source whose versions have no order.
type opaque struct{ tarn.Source[object] }

func (o opaque) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[object], error) {
	page, err := o.Source.List(ctx, tarn.ListQuery{Limit: q.Limit, Continue: q.Continue})
	page.Version = "v" + page.Version
	return page, err
}

func (o opaque) Describe(x object) (tarn.Meta, error) {
	m, err := o.Source.Describe(x)
	m.Version = "v" + m.Version
	return m, err
}

func TestOpaqueVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		l.store.SetVersion("v20")
		l.target.Sources[0] = opaque{l.target.Sources[0]}
		r := l.once(Options{})
		l.want(r, Equal, 0, 0, 0)
		if r.Exact || !strings.Contains(r.Note, "no versions to compare at") {
			t.Errorf("%s", r)
		}
		late := true
		l.meddle = func(int64, tarn.ListQuery) error {
			if late {
				late = false
				l.put(4, "later")
			}
			return nil
		}
		// The copy comes to it a moment later.
		r = l.once(Options{})
		l.want(r, Equal, 0, 0, 0)
		l.store.SetVersion("v20")
		l.store.Remove(keyOf(4))
		r = l.once(Options{})
		l.want(r, Unknown, 0, 0, 0)
		if r.Undecided != 1 || !strings.Contains(r.Note, "do not tell whether the copy is behind") {
			t.Errorf("%s", r)
		}
		// Two contents of one version are a difference in any order.
		l.corrupt(keyOf(5), setText("wrong"))
		l.want(l.once(Options{}), Different, 0, 0, 1)
	})
}

func ExampleDifference_String() {
	fmt.Println(Difference{Key: "shop/web-1", Kind: Changed, Held: "7", Served: "9", Fields: []string{"spec.replicas"}})
	// Output: shop/web-1 differs at version 7, the server has it at 9: spec.replicas
}
