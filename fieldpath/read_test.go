package fieldpath_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/fieldpath"
)

func aPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Namespace: "shop", Labels: map[string]string{"app": "web", "empty": ""},
			Annotations:       map[string]string{"example.com/owner": "ops"},
			CreationTimestamp: metav1.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
			OwnerReferences:   []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1", Priority: new(int32(0)), HostNetwork: false,
			Containers: []corev1.Container{
				{Name: "a", Image: "img:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 443}},
					Resources:     corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Gi")}},
					LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}}},
				{Name: "b", Image: "img:2", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}}},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Ready: true, RestartCount: 3}, {}}},
	}
}

func TestReadPod(t *testing.T) {
	for path, want := range map[string]string{
		"kind":                                          "string Pod",
		"metadata.name":                                 "string web-0",
		"metadata.labels[app]":                          "string web",
		"metadata.labels.app":                           "string web",
		"metadata.labels[empty]":                        "string ",
		"metadata.labels[none]":                         "",
		"metadata.labels[*]":                            "string web, string ",
		"metadata.annotations[example.com/owner]":       "string ops",
		"metadata.creationTimestamp":                    "time 2026-03-04T05:06:07Z",
		"metadata.deletionTimestamp":                    "",
		"metadata.ownerReferences[*].controller":        "bool true",
		"metadata.labels":                               "object or list {…}",
		"spec.containers":                               "object or list […]",
		"spec.initContainers":                           "",
		"spec.nodeName":                                 "string n1",
		"spec.hostname":                                 "",
		"spec.priority":                                 "whole number 0",
		"spec.hostNetwork":                              "",
		"spec.containers[*].image":                      "string img:1, string img:2",
		"spec.containers[1].image":                      "string img:2",
		"spec.containers[2].image":                      "",
		"spec.containers[*].ports[*].containerPort":     "whole number 80, whole number 443",
		"spec.containers[0].resources.requests.cpu":     "number 1.5",
		"spec.containers[0].resources.requests.memory":  "whole number 2147483648",
		"spec.containers[*].livenessProbe.httpGet.port": "string http, whole number 80",
		"status.phase":                                  "string Running",
		"status.containerStatuses[0].ready":             "bool true",
		"status.containerStatuses[1].ready":             "bool false",
		"status.containerStatuses[*].restartCount":      "whole number 3, whole number 0",
		"status.startTime":                              "",
	} {
		p := fieldpath.MustParse(path)
		if got := read(t, p, aPod()); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if got := read(t, p, *aPod()); got != want {
			t.Errorf("%s of a pod by value: %q, want %q", path, got, want)
		}
		if got := read(t, p, any(map[string]any{"pod": aPod()}["pod"])); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		inside := fieldpath.MustParse("items[0]." + path)
		if got := read(t, inside, map[string]any{"items": []any{aPod()}}); got != want {
			t.Errorf("%s of a pod inside decoded JSON: %q, want %q", path, got, want)
		}
	}
}

// read returns all values as text, after a check that First agrees.
func read(t interface{ Errorf(string, ...any) }, p *fieldpath.Path, object any) string {
	values, err := p.Append(nil, object)
	if err != nil {
		t.Errorf("%s: %v", p, err)
	}
	first, err := p.First(object)
	if err != nil || len(values) == 0 && !first.IsMissing() || len(values) > 0 && first != values[0] {
		t.Errorf("%s: First is %v, %v; Append gives %v", p, first, err, values)
	}
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v.Kind(), " ", v))
	}
	return strings.Join(texts, ", ")
}

func TestWrongPathNamesTheNearest(t *testing.T) {
	for path, want := range map[string]string{
		"spec.nodName":                 `field path "spec.nodName": spec of *v1.Pod has no "nodName"; the nearest is "spec.nodeName"`,
		"spec.NODENAME":                `the nearest is "spec.nodeName"`,
		"sepc.nodeName":                `v1.Pod has no "sepc"; the nearest is "spec"`,
		"metadata.lables[app]":         `the nearest is "metadata.labels"`,
		"spec.containers.image":        `spec.containers is a list: say "spec.containers[*].image" for all its elements, or spec.containers[0] for one`,
		"spec.containers[0].img":       `the nearest is "spec.containers[0].image"`,
		"spec.nodeName.x":              `spec.nodeName of *v1.Pod is a string, which has nothing inside`,
		"metadata.creationTimestamp.x": `is a v1.Time, which has nothing inside`,
		"spec[*]":                      `spec of *v1.Pod is not a list`,
	} {
		p := fieldpath.MustParse(path)
		_, err := p.First(aPod())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if _, again := p.Append(nil, aPod()); fmt.Sprint(again) != fmt.Sprint(err) || fmt.Sprint(p.Check(reflect.TypeFor[*corev1.Pod]())) != fmt.Sprint(err) {
			t.Errorf("%s: Append says %v", path, again)
		}
		if _, err := fieldpath.Compile[*corev1.Pod](path); err == nil {
			t.Errorf("%s was compiled", path)
		}
		if v, err := p.First(map[string]any{"spec": map[string]any{"nodeName": "x"}}); err != nil || !v.IsMissing() && v.Kind() != fieldpath.Composite && path != "spec[*]" {
			t.Errorf("%s of decoded JSON: %v, %v; want nothing", path, v, err)
		}
	}
}

func TestNothingToRead(t *testing.T) {
	p := fieldpath.MustParse("metadata.name")
	for _, object := range []any{nil, (*corev1.Pod)(nil), map[string]any(nil), "text", 5, &unstructured.Unstructured{}, map[string]any{"metadata": nil}, map[string]any{"metadata": "x"}} {
		if v, err := p.First(object); err != nil || !v.IsMissing() {
			t.Errorf("%T: %v, %v", object, v, err)
		}
	}
	a, err := fieldpath.Compile[*corev1.Pod]("metadata.name")
	if err != nil || !a.First(nil).IsMissing() || len(a.Append(nil, nil)) != 0 {
		t.Errorf("an accessor finds something in a nil pod, or %v", err)
	}
}

func TestAccessor(t *testing.T) {
	pod, err := fieldpath.Compile[*corev1.Pod]("spec.containers[*].image")
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Append(nil, aPod()); len(got) != 2 || got[0] != pod.First(aPod()) || got[1].String() != "img:2" {
		t.Errorf("images %v", got)
	}
	value, err := fieldpath.Compile[corev1.Pod]("spec.nodeName")
	if err != nil || value.First(*aPod()).String() != "n1" || value.Path().String() != "spec.nodeName" {
		t.Errorf("of a struct: %v, %v", value.First(*aPod()), err)
	}
	anything, err := fieldpath.Compile[any]("spec.nodeName")
	if err != nil || anything.First(aPod()).String() != "n1" || anything.First(toJSON(t, aPod())).String() != "n1" {
		t.Errorf("of an interface: %v", err)
	}
	if _, err := fieldpath.Compile[any]("a..b"); err == nil {
		t.Error("a malformed path was compiled")
	}
}

// odd has every way in which a field can get into JSON, or not.
type odd struct {
	Base `json:",inline"`
	*Deep
	Named   Base   `json:"named"`
	Zero    Base   `json:"zero,omitzero"`
	Hidden  string `json:"-"`
	Plain   string
	Empty   string             `json:"empty,omitempty"`
	Pointer *string            `json:"pointer,omitempty"`
	Twice   **int              `json:"twice"`
	Any     any                `json:"any,omitempty"`
	List    []Base             `json:"list,omitempty"`
	Lists   [][]int            `json:"lists"`
	Texts   map[string]text    `json:"texts,omitempty"`
	Bases   map[text]Base      `json:"bases,omitempty"`
	Bytes   []byte             `json:"bytes,omitempty"`
	Float   float32            `json:"float,omitempty"`
	Uint    uint64             `json:"uint"`
	Bool    bool               `json:"bool,omitempty"`
	Port    intstr.IntOrString `json:"port,omitempty"`
	hidden  string
}

type text string

type Base struct {
	ID    int    `json:"id"`
	Label string `json:"label,omitempty"`
}

type Deep struct {
	ID     string `json:"id"` // conflicts with Base's: neither counts
	Bottom int64  `json:"bottom"`
	Other  *Base  `json:"other,omitempty"`
}

func anOdd() *rapid.Generator[*odd] {
	word := rapid.SampledFrom([]string{"", "a", "b.c", "0", "x y"})
	base := rapid.Custom(func(t *rapid.T) Base { return Base{rapid.IntRange(0, 2).Draw(t, "id"), word.Draw(t, "label")} })
	number := rapid.IntRange(-2, 2)
	return rapid.Custom(func(t *rapid.T) *odd {
		o := &odd{
			Base: base.Draw(t, "base"), Named: base.Draw(t, "named"), Zero: base.Draw(t, "zero"), Hidden: "h", hidden: "h", Plain: word.Draw(t, "plain"), Empty: word.Draw(t, "empty"),
			List: rapid.SliceOfN(base, 0, 3).Draw(t, "list"), Lists: rapid.SliceOfN(rapid.SliceOfN(number, 0, 2), 0, 2).Draw(t, "lists"),
			Texts: rapid.MapOfN(word, rapid.Map(word, func(s string) text { return text(s) }), 0, 3).Draw(t, "texts"),
			Bases: rapid.MapOfN(rapid.Map(word, func(s string) text { return text(s) }), base, 0, 3).Draw(t, "bases"),
			Bytes: rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "bytes"), Float: float32(number.Draw(t, "float")) / 2, Uint: uint64(number.Draw(t, "uint") + 2), Bool: rapid.Bool().Draw(t, "bool"),
			Port: intstr.FromInt(number.Draw(t, "port")),
		}
		if rapid.Bool().Draw(t, "has") {
			s, n := word.Draw(t, "pointer"), number.Draw(t, "twice")
			pn := &n
			o.Pointer, o.Twice = &s, &pn
			o.Deep = &Deep{ID: "deep", Bottom: int64(n), Other: &o.Named}
			o.Any = rapid.SampledFrom([]any{nil, "text", 1.5, true, []any{"x", nil}, map[string]any{"k": "v"}, &Base{Label: "in any"}, []string{"s"}, map[string]string{"m": "n"}}).Draw(t, "any")
		}
		return o
	})
}

func toJSON(t interface{ Fatalf(string, ...any) }, object any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatalf("%v", err)
	}
	return decoded
}

var oddPaths = func() (paths []*fieldpath.Path) {
	for _, text := range []string{
		"label", "bottom", "other.id", "other.label", "named.id", "named.label", "named", "zero", "zero.id", "zero.label", "Plain", "empty", "pointer", "twice",
		"any", "any[0]", "any.k", "any[*]", "any.label", "any.m", "any.x.y.z", "list", "list[0].id", "list[*].label", "list[2].label", "lists", "lists[0]", "lists[0][1]", "lists[*][*]", "lists[1][*]",
		"texts", "texts.a", "texts['b.c']", "texts[*]", "texts['']", "bases.a.label", "bases[*].id", "bases", "bytes", "float", "uint", "bool", "port",
	} {
		paths = append(paths, fieldpath.MustParse(text))
	}
	return paths
}()

// A struct and the decoded JSON of it have the same values under every path.
func TestStructAndJSONAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anOdd().Draw(t, "odd")
		decoded := toJSON(t, o)
		if _, there := decoded["id"]; there || fieldpath.MustParse("id").Check(reflect.TypeFor[*odd]()) == nil {
			t.Fatalf("of two names that tie, one was taken")
		}
		for _, p := range oddPaths {
			if _, typed := o.Any.(*Base); typed && p.String() == "any[*]" {
				continue // a path cannot select all members of a struct
			}
			typed, plain := read(t, p, o), read(t, p, decoded)
			if typed != plain {
				t.Fatalf("%s: the struct has %q, its JSON %q", p, typed, plain)
			}
			if wrapped := read(t, p, &unstructured.Unstructured{Object: decoded}); wrapped != plain {
				t.Fatalf("%s: unstructured has %q, the map in it %q", p, wrapped, plain)
			}
			if byValue := read(t, p, *o); byValue != typed {
				t.Fatalf("%s: by value %q, by pointer %q", p, byValue, typed)
			}
		}
	})
}

// A path finds a scalar exactly where apimachinery's own lookup does.
func TestAgreesWithNestedField(t *testing.T) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(aPod())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"metadata", "labels", "app", "name", "spec", "nodeName", "priority", "status", "phase", "hostNetwork", "annotations", "example.com/owner", "nothing"}
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(t, "fields")
		want, found, _ := unstructured.NestedFieldNoCopy(object, fields...)
		p, err := fieldpath.Parse("['" + strings.Join(fields, "']['") + "']")
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.First(object)
		if err != nil || found == v.IsMissing() {
			t.Fatalf("%s: %v, %v; apimachinery finds %v, %v", p, v, err, want, found)
		}
		if _, composite := want.(map[string]any); found && !composite && v.String() != fmt.Sprint(want) {
			t.Fatalf("%s: %q; apimachinery finds %v", p, v, want)
		}
		if typed, err := p.First(aPod()); err == nil && typed != v {
			t.Fatalf("%s: %q in the pod, %q in its JSON", p, typed, v)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	pod, object := aPod(), any(toJSON(t, aPod()))
	for _, text := range []string{"spec.nodeName", "spec.priority", "status.containerStatuses[0].ready", "metadata.labels[app]", "metadata.creationTimestamp", "spec.containers[*].image"} {
		p := fieldpath.MustParse(text)
		accessor, err := fieldpath.Compile[*corev1.Pod](text)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]fieldpath.Value, 0, 8)
		for name, read := range map[string]func(){
			"First":          func() { _, _ = p.First(pod) },
			"Append":         func() { values, _ = p.Append(values[:0], pod) },
			"accessor":       func() { _ = accessor.First(pod) },
			"of JSON":        func() { _, _ = p.First(object) },
			"Append of JSON": func() { values, _ = p.Append(values[:0], object) },
		} {
			read()
			if n := testing.AllocsPerRun(100, read); n != 0 {
				t.Errorf("%s of %s: %v allocations", name, text, n)
			}
		}
	}
}

// Several goroutines may use one path on several types.
func TestConcurrentUse(t *testing.T) {
	p := fieldpath.MustParse("metadata.name")
	objects := []any{aPod(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}, toJSON(t, aPod()), &unstructured.Unstructured{Object: toJSON(t, aPod())}}
	done := make(chan bool)
	for i := range 8 {
		go func() {
			ok := true
			for k := range 300 {
				v, err := p.First(objects[(i+k)%len(objects)])
				ok = ok && err == nil && v.String() == "web-0"
			}
			done <- ok
		}()
	}
	for range 8 {
		if !<-done {
			t.Error("a goroutine read something else")
		}
	}
}
