package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/google/go-cmp/cmp"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

func TestEqual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		r := l.once(Options{PageSize: 6})
		l.want(r, Equal, 0, 0, 0)
		if !r.Exact || r.Objects != 20 || r.Listed != 20 || r.Requests != 4 || string(r.Version) != l.server.Version() || r.Digest != r.ServerDigest {
			t.Errorf("%+v", r)
		}
		if again := l.once(Options{PageSize: 100}); again.Digest != r.Digest || again.Requests != 1 {
			t.Errorf("%s, and then %s", r, again)
		}
		l.put(3, "second")
		l.reach()
		if other := l.once(Options{}); other.Digest == r.Digest || other.Verdict != Equal {
			t.Errorf("after a write: %s", other)
		}
		if want := "configmaps: equal at version " + string(r.Version) + ", 20 objects, digest " + r.Digest.String(); r.String() != want {
			t.Errorf("%q, want %q", r, want)
		}
		if none := l.once(Options{NoDigest: true}).String(); strings.Contains(none, "digest") {
			t.Error(none)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{})
		r := l.once(Options{})
		l.want(r, Equal, 0, 0, 0)
	})
}

func TestDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		corrupt func(l *lake)
		want    []Difference
	}{
		"missing": {
			func(l *lake) { l.store.Remove(keyOf(4)) },
			[]Difference{{Key: "n1/c004", Kind: Missing, Served: "+0"}},
		},
		"extra": {
			func(l *lake) {
				held, _ := l.store.Get(keyOf(4))
				copied := held.DeepCopy()
				copied.SetName("made-up")
				_ = l.store.Put("n1/made-up", copied)
			},
			[]Difference{{Key: "n1/made-up", Kind: Extra, Held: "+0"}},
		},
		"content": {
			func(l *lake) {
				l.corrupt(keyOf(4), func(o object) {
					setText("wrong")(o)
					_ = unstructured.SetNestedField(o.Object, "x", "data", "more")
					o.SetLabels(map[string]string{"app.kubernetes.io/name": "puddle"})
				})
			},
			[]Difference{{Key: "n1/c004", Kind: Changed, Held: "+0", Served: "+0",
				Fields: []string{"data.more", "data.text", "metadata.labels['app.kubernetes.io/name']"}}},
		},
		"an older state": {
			func(l *lake) {
				old, _ := l.store.Get(keyOf(4))
				l.put(4, "second")
				l.reach()
				_ = l.store.Put(keyOf(4), old)
			},
			[]Difference{{Key: "n1/c004", Kind: Changed, Held: "+0", Served: "+6", Fields: []string{"data.text", "metadata.resourceVersion"}}},
		},
		"a state that never was": {
			func(l *lake) {
				l.corrupt(keyOf(4), func(o object) { o.SetResourceVersion("900" + o.GetResourceVersion()) })
			},
			[]Difference{{Key: "n1/c004", Kind: Changed, Held: "+9000000", Served: "+0", Fields: []string{"metadata.resourceVersion"}}},
		},
		"another object under the name": {
			func(l *lake) { l.corrupt(keyOf(4), func(o object) { o.SetUID("another") }) },
			[]Difference{{Key: "n1/c004", Kind: Changed, Held: "+0", Served: "+0", Fields: []string{"metadata.uid"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLake(t, shape{objects: 10})
				first, _ := l.store.Get(keyOf(4))
				base := tarn.Version(first.GetResourceVersion())
				test.corrupt(l)
				r := l.once(Options{PageSize: 3, MaxDifferences: 4})
				if diff := cmp.Diff(test.want, relative(r.Differences, base)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if r.Verdict != Different || r.Digest == r.ServerDigest || !r.Exact {
					t.Errorf("%s", r)
				}
				data, err := json.Marshal(r)
				var back Result
				if err != nil || json.Unmarshal(data, &back) != nil || !cmp.Equal(r, back, cmp.Comparer(func(a, b Digest) bool { return a == b })) {
					t.Errorf("as JSON it is %s (%v)", data, err)
				}
			})
		})
	}
}

// relative gives versions as their distance from another.
func relative(differences []Difference, base tarn.Version) []Difference {
	number := func(v tarn.Version) int {
		n, _ := strconv.Atoi(string(v))
		return n
	}
	var all []Difference
	for _, d := range differences {
		for _, v := range []*tarn.Version{&d.Held, &d.Served} {
			if *v != "" {
				*v = tarn.Version(fmt.Sprintf("%+d", number(*v)-number(base)))
			}
		}
		all = append(all, d)
	}
	return all
}

// All differences are counted, some are listed.
func TestDifferencesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 90})
		for i := range 30 {
			l.store.Remove(keyOf(i))
			l.corrupt(keyOf(30+i), func(o object) {
				for j := range 30 {
					o.Object[fmt.Sprint("field", j)] = true
				}
			})
		}
		r := l.once(Options{})
		l.want(r, Different, 30, 0, 30)
		if len(r.Differences) != 20 || !slices.ContainsFunc(r.Differences, func(d Difference) bool { return len(d.Fields) == maxFields }) {
			t.Errorf("%d differences: %v", len(r.Differences), r.Differences)
		}
	})
}

// What the copy was made without is not missed.
func TestDroppedAndTransformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 10,
			source: kube.SourceOptions{Drop: []string{"metadata.labels"}, Unshared: true},
			transform: func(o object) (object, error) {
				delete(o.Object, "data")
				return o, nil
			},
		})
		l.want(l.once(Options{}), Equal, 0, 0, 0)
		l.target.Transform = nil
		l.want(l.once(Options{}), Different, 0, 0, 10)
		l.target.Transform = func(o object) (object, error) {
			if o.GetName() == "c004" {
				panic("four")
			}
			delete(o.Object, "data")
			return o, nil
		}
		r := l.once(Options{})
		l.want(r, Unknown, 0, 0, 0)
		if r.Unreadable != 1 {
			t.Errorf("%s", r)
		}
	})
}

// A version that expires, before or in the middle of a list, costs a newer one.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		l.meddle = func(n int64, q tarn.ListQuery) error {
			if n == 1 || n == 5 {
				l.put(1, fmt.Sprint(n))
				l.put(2, fmt.Sprint(n))
				l.server.Compact()
			}
			return nil
		}
		r := l.once(Options{PageSize: 6})
		l.want(r, Equal, 0, 0, 0)
		if !r.Exact || string(r.Version) != l.server.Version() || r.Requests != int(l.lists.Load()) || r.Requests != 10 {
			t.Errorf("%s after %d requests, of which it says %d", r, l.lists.Load(), r.Requests)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		l.meddle = func(n int64, q tarn.ListQuery) error {
			if q.Continue != "" {
				l.put(1, fmt.Sprint(n))
				l.server.Compact()
			}
			return nil
		}
		r, err := Once(t.Context(), l.target, Options{PageSize: 6})
		if err == nil || !strings.Contains(err.Error(), "ask for larger pages than 6") || r.Verdict != Unknown || l.lists.Load() != 11 {
			t.Errorf("%v after %d requests; %s", err, l.lists.Load(), r)
		}
	})
}

// Failures are not verdicts.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		forbidden := apierrors.NewForbidden(corePods, "", errors.New("no"))
		l.meddle = func(int64, tarn.ListQuery) error { return forbidden }
		r, err := Once(t.Context(), l.target, Options{})
		if !errors.Is(err, forbidden) || !strings.HasPrefix(err.Error(), "configmaps: cannot be compared with the server") || r.Verdict != Unknown {
			t.Errorf("%v; %s", err, r)
		}
		busy := tarn.Because(tarn.ReasonBusy, time.Second, errors.New("busy"))
		l.meddle = func(int64, tarn.ListQuery) error { return busy }
		if _, err := Once(t.Context(), l.target, Options{}); !errors.Is(err, busy) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.meddle = func(int64, tarn.ListQuery) error { cancel(); return nil }
		if _, err := Once(ctx, l.target, Options{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := Once(t.Context(), Target[object]{Name: "half"}, Options{}); err == nil || !strings.Contains(err.Error(), `"half" needs a replica`) {
			t.Error(err)
		}
	})
}

// A kube.Source is read apart from the copy without an option for it: a part that
// both would find in the pool would hide a write to it.
func TestSourcesAreReadApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLake(t, shape{objects: 20})
		client, err := kube.NewClient(l.server.Config())
		if err != nil {
			t.Fatal(err)
		}
		source, err := kube.NewSource[object](client, kube.Collection{
			Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Object: reflect.TypeFor[object](),
		}, kube.SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		replica, err := tarn.NewReplica(source, l.store, tarn.Options[object]{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = replica.Run(ctx) }()
		l.target.Replica, l.target.Sources = replica, []tarn.Source[object]{source}
		l.want(l.once(Options{}), Equal, 0, 0, 0)
		held, _ := l.store.Get(keyOf(5))
		held.Object["data"].(map[string]any)["text"] = "scribbled"
		if r := l.once(Options{}); r.Verdict != Different || r.Changed < 1 || r.Missing+r.Extra > 0 || !slices.Equal(r.Differences[0].Fields, []string{"data.text"}) {
			t.Errorf("%s: %v", r, r.Differences)
		}
		cancel()
		<-replica.Done()
	})
}

func TestTypedObjects(t *testing.T) {
	a := side[any]{object: struct{ A, B []string }{A: nil}}
	b := side[any]{object: struct{ A, B []string }{A: []string{}}}
	if a.same(b) {
		t.Error("null and [] are written differently")
	}
	type tidy struct {
		A []string `json:"a,omitempty"`
	}
	c, d := side[any]{object: &tidy{}}, side[any]{object: &tidy{A: []string{}}}
	if !c.same(d) {
		t.Error("nil and empty are left out alike")
	}
	if got := differingFields(&tidy{[]string{"x", "y"}}, &tidy{[]string{"x", "z", "y"}}, 9); !slices.Equal(got, []string{"a[1]", "a[2]"}) {
		t.Error(got)
	}
}
