package json

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// podJSON is a pod with a name of its own, as servers write it.
func podJSON(name, node string) []byte {
	return []byte(strings.NewReplacer("web-1", name, "6183faa1", "uid-"+name, "node-1", node).Replace(somePod))
}

func decodePods(t testing.TB, d *Decoder, n int) []*corev1.Pod {
	t.Helper()
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = wantStockJSON(t, d, podJSON(fmt.Sprint("web-", i), "node-1")).(*corev1.Pod)
	}
	return pods
}

func TestJSONSharesTyped(t *testing.T) {
	pods := decodePods(t, newJSON(t, podType, pool.Options{Pool: pool.New(), SharedMetadata: true}), 3)
	a, b := pods[1], pods[2]
	shared := map[string][2]unsafe.Pointer{
		"containers": {unsafe.Pointer(unsafe.SliceData(a.Spec.Containers)), unsafe.Pointer(unsafe.SliceData(b.Spec.Containers))},
		"owners":     {unsafe.Pointer(unsafe.SliceData(a.OwnerReferences)), unsafe.Pointer(unsafe.SliceData(b.OwnerReferences))},
		"labels":     {reflect.ValueOf(a.Labels).UnsafePointer(), reflect.ValueOf(b.Labels).UnsafePointer()},
	}
	for what, at := range shared {
		if at[0] != at[1] {
			t.Errorf("%s: two of the same", what)
		}
	}
	for _, c := range []int{cap(a.Spec.Containers), cap(a.OwnerReferences), cap(a.Status.Conditions), cap(a.ManagedFields)} {
		if c != 1 {
			t.Errorf("a shared slice of one element has room for %d: an append would write to all who share it", c)
		}
	}
}

func TestJSONTexts(t *testing.T) {
	texts := textMaker{seed: maphash.MakeSeed()}
	first, second, third := texts.string([]byte("Running")), texts.string([]byte("Running")), texts.string([]byte("Running"))
	if first != "Running" || second != first || unsafe.StringData(second) != unsafe.StringData(third) {
		t.Errorf("%q, %q, %q: want one string from the second time on", first, second, third)
	}
	a, b := texts.box([]byte("Running")), texts.box([]byte("Running"))
	if (*shape.Interface)(unsafe.Pointer(&a)).Data != (*shape.Interface)(unsafe.Pointer(&b)).Data || a != any("Running") {
		t.Errorf("%v, %v: want one boxed string", a, b)
	}
	allocated := testing.AllocsPerRun(100, func() {
		for i := range byte(30) {
			texts.string([]byte{'u', 'i', 'd', i})
		}
	})
	if allocated > 1 {
		t.Errorf("%v allocations for 30 new short texts", allocated)
	}
	long := strings.Repeat("x", chunkBytes+1)
	if texts.string([]byte(long)) != long || texts.box([]byte(long)) != any(long) || texts.box(nil) != any("") {
		t.Error("a long or an empty text is not what it was")
	}
}

func TestJSONSharesUnstructured(t *testing.T) {
	d := newJSON(t, untypedType, pool.Options{Pool: pool.New(), SharedMetadata: true})
	var all []map[string]any
	for i := range 3 {
		all = append(all, wantStockJSON(t, d, podJSON(fmt.Sprint("web-", i), "node-1")).(*unstructured.Unstructured).Object)
	}
	at := func(object map[string]any, path ...string) unsafe.Pointer {
		x, _, err := unstructured.NestedFieldNoCopy(object, path...)
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := x.([]any); ok {
			return unsafe.Pointer(unsafe.SliceData(a))
		}
		return reflect.ValueOf(x).UnsafePointer()
	}
	for path, want := range map[string]bool{"metadata": false, "spec": true, "spec.containers": true, "status.conditions": true, "metadata.labels": true} {
		path := strings.Split(path, ".")
		if got := at(all[1], path...) == at(all[2], path...); got != want {
			t.Errorf("%v: shared %v, want %v", path, got, want)
		}
	}
	all[1]["kind"] = "changed"
	all[1]["metadata"].(map[string]any)["name"] = "changed"
	if all[2]["kind"] != "Pod" || all[2]["metadata"].(map[string]any)["name"] != "web-2" {
		t.Error("the top of one object is that of another")
	}
}

func TestJSONPrivateMaps(t *testing.T) {
	opts := pool.Options{Pool: pool.New()}
	pods := decodePods(t, newJSON(t, podType, opts), 3)
	d := newJSON(t, untypedType, opts)
	var metas []map[string]any
	for i := range 3 {
		u := wantStockJSON(t, d, podJSON(fmt.Sprint("web-", i), "node-1")).(*unstructured.Unstructured)
		metas = append(metas, u.Object["metadata"].(map[string]any))
	}
	pods[1].Labels["app"], pods[1].Annotations["note"] = "changed", "changed"
	metas[1]["labels"].(map[string]any)["app"] = "changed"
	metas[1]["annotations"].(map[string]any)["note"] = "changed"
	for _, i := range []int{0, 2} {
		if pods[i].Labels["app"] != "web" || pods[i].Annotations["note"] == "changed" {
			t.Error("a pod's label or annotation was changed through another")
		}
		if metas[i]["labels"].(map[string]any)["app"] != "web" || metas[i]["annotations"].(map[string]any)["note"] == "changed" {
			t.Error("an unstructured pod's label or annotation was changed through another")
		}
	}
}

func TestJSONDrop(t *testing.T) {
	const odd = `"status":{"phase":"Running","phase":"Failed","podIP":"10.0.0.1"}}`
	documents := map[string]string{
		"ordinary": somePod,
		"odd":      somePod[:strings.Index(somePod, `"status"`)] + odd,
	}
	paths := []string{"metadata.managedFields", "status.conditions", "spec.containers.env", "metadata.annotations"}
	parts := pool.New()
	for name, raw := range documents {
		for _, of := range []reflect.Type{podType, untypedType} {
			whole := newJSON(t, of, pool.Options{Pool: parts})
			d := newJSON(t, of, pool.Options{Pool: parts, Drop: paths})
			for range 2 {
				wantStockJSON(t, whole, []byte(raw)) // in the same pool, and not affected
				got, err := d.Decode([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				want, _ := stockJSONOf(of, []byte(raw))
				if u, ok := want.(*unstructured.Unstructured); ok {
					for _, path := range paths {
						dropMember(u.Object, path)
					}
				} else {
					pod := want.(*corev1.Pod)
					pod.ManagedFields, pod.Annotations, pod.Status.Conditions, pod.Spec.Containers[0].Env = nil, nil, nil, nil
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s %v:\n got %v\nwant %v", name, of, got, want)
				}
			}
		}
	}
	d := newJSON(t, podType, pool.Options{Drop: []string{"spec"}})
	if got, err := d.Decode([]byte(`{"spec":{"nodeName":17},"status":{}}`)); err != nil || got.(*corev1.Pod).Spec.NodeName != "" {
		t.Errorf("got %v, %v: what is dropped is not decoded", got, err)
	}
	if _, err := d.Decode([]byte(`{"spec":{"nodeName":tru},"status":{}}`)); err == nil {
		t.Error("no error for broken JSON in what is dropped")
	}
}

// TestJSONSharingChangesNothing decodes objects made of few pieces in any order,
// and compares each of them again when all are decoded.
func TestJSONSharingChangesNothing(t *testing.T) {
	parts := pool.New()
	pieces := []string{`null`, `1`, `600`, `"a"`, `"bc"`, `true`, `[]`, `{}`, `["a","bc"]`, `[1,600]`, `{"a":"b"}`, `{"int8":1,"texts":["a"]}`,
		`{"self":{"labels":{"a":"b"},"texts":["a","bc"]}}`, `{"list":[{"int32Ptr":7,"boolPtr":true},{"any":{"a":[1,{}]}}]}`, `{"textPtr":"a","int32Ptr":600}`, `"2024-01-02T03:04:05Z"`}
	names := []string{"bool", "int32", "string", "any", "texts", "labels", "time", "boolPtr", "int32Ptr", "textPtr", "self", "list", "unknown"}
	rapid.Check(t, func(t *rapid.T) {
		typed := New(reflect.TypeFor[everyKind](), pool.Options{Pool: parts})
		untyped := New(untypedType.Elem(), pool.Options{Pool: parts})
		type decoded struct {
			object any
			raw    []byte
		}
		var all []decoded
		for range rapid.IntRange(1, 20).Draw(t, "objects") {
			d := rapid.SampledFrom([]*Decoder{typed, untyped}).Draw(t, "decoder")
			var members []string
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				members = append(members, fmt.Sprintf("%q:%s", rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom(pieces).Draw(t, "piece")))
			}
			raw := []byte("{" + strings.Join(members, ",") + "}")
			object, err := d.Decode(raw)
			want, wantErr := stockJSONOf(reflect.PointerTo(d.objectType), raw)
			if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(object, want) {
				t.Fatalf("%s:\n got %v, %v\nwant %v, %v", raw, object, err, want, wantErr)
			}
			if err == nil {
				all = append(all, decoded{object, append([]byte(nil), raw...)})
			}
			clear(raw) // the caller may reuse it
		}
		for _, d := range all {
			if want, _ := stockJSONOf(reflect.TypeOf(d.object), d.raw); !reflect.DeepEqual(d.object, want) {
				t.Fatalf("%s: is now %v", d.raw, d.object)
			}
		}
	})
}

func TestJSONConcurrently(t *testing.T) {
	parts := pool.New()
	decoders := []*Decoder{newJSON(t, podType, pool.Options{Pool: parts}), newJSON(t, untypedType, pool.Options{Pool: parts}), newJSON(t, partialType, pool.Options{Pool: parts})}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 200 {
				d := decoders[(i+worker)%len(decoders)]
				raw := podJSON(fmt.Sprint("web-", i, "-", worker), fmt.Sprint("node-", i%3))
				got, err := d.Decode(raw)
				want, _ := stockJSONOf(reflect.PointerTo(d.objectType), raw)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %v, %v", raw, got, err)
				}
				if i%50 == 0 {
					parts.Collect()
				}
			}
		})
	}
	group.Wait()
}

// TestJSONSortedKeys has custom resources as servers write them: by name, the uid
// after everything else in the metadata.
func TestJSONSortedKeys(t *testing.T) {
	var tree map[string]any
	if err := json.Unmarshal([]byte(somePod), &tree); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{podType, untypedType, partialType} {
		d := newJSON(t, of, pool.Options{Pool: pool.New()})
		for range 3 {
			wantStockJSON(t, d, raw)
		}
		if !fast(d, raw) {
			t.Errorf("%v: left to the stock decoder", of)
		}
	}
	s := &reader{data: raw}
	s.pool, s.ownerUnknown = pool.New(), true
	if s.identify(); s.owner == pool.UnknownOwner {
		t.Error("the object was not told apart by its uid")
	}
	other := &reader{data: podJSON("other", "node-1")}
	other.pool, other.ownerUnknown = s.pool, true
	if other.identify(); other.owner == s.owner {
		t.Error("two objects count as one")
	}
}

func BenchmarkJSON(b *testing.B) {
	for _, of := range []reflect.Type{podType, untypedType, reflect.TypeFor[*metav1.PartialObjectMetadata]()} {
		var raws [][]byte
		for i := range 64 {
			raws = append(raws, podJSON(fmt.Sprint("web-", i), fmt.Sprint("node-", i%7)))
		}
		name := of.Elem().Name()
		b.Run(name+"/tarn", func(b *testing.B) {
			d := newJSON(b, of, pool.Options{Pool: pool.New()})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := d.Decode(raws[i%len(raws)]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/stock", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := stockJSONOf(of, raws[i%len(raws)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
