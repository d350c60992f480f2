package share_test

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/share"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// allKinds are the kinds of client-go's scheme, in an order that stays.
func allKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.Scheme.AllKnownTypes() {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	return kinds
}

// fillAny makes random content: quantities with and without their text, times in
// several places, bytes and what is nil.
func fillAny(seed int64) *randfill.Filler {
	zone := time.FixedZone("lake", 3600)
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(9).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1<<20), resource.DecimalSI)
			if c.Bool() {
				*q = resource.MustParse("12345678901234567890123")
			}
			if c.Bool() {
				_ = q.String()
			}
		},
		func(t *metav1.Time, c randfill.Continue) {
			t.Time = time.Unix(c.Int63n(1<<20), 0)
			if c.Bool() {
				t.Time = t.In(zone)
			} else if c.Bool() {
				t.Time = t.UTC()
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) { t.Time = time.Unix(c.Int63n(1<<20), 1000) },
		func(o *runtime.Object, c randfill.Continue) {
			if c.Bool() {
				*o = &metav1.Status{Message: c.String(5)}
			}
		},
	)
}

// TestShareEveryType: the result equals the input, the input does not change, and
// two equal objects have the same parts.
func TestShareEveryType(t *testing.T) {
	parts := pool.New()
	for i, kind := range wiretest.Some(allKinds()) {
		for _, private := range []bool{false, true} {
			sharer := share.New(parts, pool.Options{SharedMetadata: !private})
			filler := fillAny(int64(i))
			var other any
			for round := range 4 {
				object, err := scheme.Scheme.New(kind)
				if err != nil {
					t.Fatal(err)
				}
				filler.Fill(object)
				before, twin := object.DeepCopyObject(), object.DeepCopyObject()
				shared := sharer.Share(object)
				if !reflect.DeepEqual(object, before) {
					t.Fatalf("%v round %d: what was given has changed", kind, round)
				}
				if !reflect.DeepEqual(shared, before) {
					t.Fatalf("%v round %d: what came back is different\n%#v\n%#v", kind, round, shared, before)
				}
				again := sharer.Share(twin)
				if !reflect.DeepEqual(again, before) || !reflect.DeepEqual(twin, before) {
					t.Fatalf("%v round %d: the second time it is different", kind, round)
				}
				compareParts(t, kind.String(), reflect.ValueOf(shared).Elem(), reflect.ValueOf(again).Elem(), private)
				for _, like := range []any{shared, other} {
					fresh := before.DeepCopyObject()
					if got := sharer.ShareLike(fresh, like); !reflect.DeepEqual(got, before) || !reflect.DeepEqual(fresh, before) {
						t.Fatalf("%v round %d: it is different after another one", kind, round)
					}
				}
				for _, like := range []any{nil, shared, other} {
					got := sharer.ShareOwn(before.DeepCopyObject(), like)
					if !reflect.DeepEqual(got, before) {
						t.Fatalf("%v round %d: it is different in its place\n%#v\n%#v", kind, round, got, before)
					}
					if like == nil {
						compareParts(t, kind.String(), reflect.ValueOf(shared).Elem(), reflect.ValueOf(got).Elem(), private)
					}
				}
				if !reflect.DeepEqual(shared, before) || !reflect.DeepEqual(again, before) {
					t.Fatalf("%v round %d: others changed", kind, round)
				}
				other = again
			}
		}
	}
}

// compareParts checks that two shared objects of equal content have the same parts
// where these can be shared, and separate ones otherwise.
func compareParts(t *testing.T, path string, a, b reflect.Value, private bool) {
	t.Helper()
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			field := a.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			if private && a.Type() == reflect.TypeFor[metav1.ObjectMeta]() && slices.Contains(privateFields, field.Name) {
				if a.Field(i).Len() > 0 && a.Field(i).UnsafePointer() == b.Field(i).UnsafePointer() {
					t.Errorf("%s.%s is shared", path, field.Name)
				}
				continue
			}
			compareParts(t, path+"."+field.Name, a.Field(i), b.Field(i), private)
		}
	case reflect.String:
		if a.Len() > 0 && unsafe.StringData(a.String()) != unsafe.StringData(b.String()) {
			t.Errorf("%s: %q is there twice", path, a)
		}
	case reflect.Slice, reflect.Map, reflect.Pointer:
		if a.IsNil() || a.Kind() != reflect.Pointer && a.Len() == 0 || a.Kind() == reflect.Pointer && a.Type().Elem().Size() == 0 {
			return
		}
		if a.Kind() == reflect.Slice && a.Cap() != a.Len() {
			t.Errorf("%s: room behind a shared slice: len %d, cap %d", path, a.Len(), a.Cap())
		}
		if same := a.UnsafePointer() == b.UnsafePointer(); same != (shareable(a, private) && largeEnough(a)) {
			t.Errorf("%s: shared is %v: %v", path, same, a)
		}
	}
}

// privateFields are the metadata fields that belong to one object.
var privateFields = []string{"Labels", "Annotations", "OwnerReferences", "Finalizers"}

// largeEnough says whether a part is large enough, and no single value.
func largeEnough(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		switch v.Interface().(type) {
		case *metav1.Time, *metav1.MicroTime, *metav1.Duration, *intstr.IntOrString, *resource.Quantity:
			return false
		}
		return v.Type().Elem().Size() >= 16 && v.Type().Elem().Kind() != reflect.String
	case reflect.Slice:
		return int(v.Type().Elem().Size())*v.Len() >= 16
	default:
		return true
	}
}

// shareable says whether a part has nothing in it that keeps it from being
// shared.
func shareable(v reflect.Value, private bool) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil()
	case reflect.Pointer:
		return v.IsNil() || shareable(v.Elem(), private)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !shareable(v.Index(i), private) {
				return false
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if !shareable(v.MapIndex(key), private) {
				return false
			}
		}
	case reflect.Struct:
		if q, ok := v.Interface().(resource.Quantity); ok {
			if v.CanAddr() && v.FieldByName("s").String() == "" {
				return false // String writes to it
			}
			return q.ToDec() == nil || q.IsZero() || q.CmpInt64(1<<62) < 0 // larger ones have a pointer of their own
		}
		if v.Type() == reflect.TypeFor[time.Time]() {
			return true
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if private && v.Type() == reflect.TypeFor[metav1.ObjectMeta]() && slices.Contains(privateFields, field.Name) {
				if !v.Field(i).IsNil() {
					return false
				}
				continue
			}
			if field.IsExported() && !shareable(v.Field(i), private) {
				return false
			}
		}
	}
	return true
}
