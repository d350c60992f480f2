package guard

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A caller that gave an object may change its own copy: a test that sends an object,
// changes it, and sends it again has written to nothing in a cache.
func TestGiversMayChangeTheirObjects(t *testing.T) {
	s := session(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "web"}},
		Data:       map[string][]byte{"key": []byte("value")},
	}
	gotSecret := frozen(t, s, "shop/a", secret)
	secret.Labels["app"], secret.Data["key"][0] = "db", 'V'

	p := pod("web")
	gotPod := frozen(t, s, "shop/web", p)
	p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")

	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "spec": map[string]any{"args": []any{"a", int64(7), nil, map[string]any{"b": true}}}}}
	want := u.DeepCopy()
	gotU := frozen(t, s, "shop/u", u)
	u.Object["spec"].(map[string]any)["args"].([]any)[3].(map[string]any)["b"] = false

	if err := s.Check(); err != nil {
		t.Errorf("a change of the giver's own object was reported: %v", err)
	}
	if gotSecret.Labels["app"] != "web" || string(gotSecret.Data["key"]) != "value" {
		t.Errorf("the secret changed with the giver's: %v %s", gotSecret.Labels, gotSecret.Data)
	}
	if cpu := gotPod.Spec.Containers[0].Resources.Requests["cpu"]; cpu.String() != "100m" {
		t.Errorf("the pod changed with the giver's: %v", cpu)
	}
	if !reflect.DeepEqual(gotU, want) {
		t.Errorf("the unstructured object changed with the giver's: %v", gotU)
	}
	gotU.Object["spec"].(map[string]any)["args"].([]any)[3].(map[string]any)["b"] = false
	if s.Check() == nil {
		t.Error("a write to the frozen object was not found")
	}
}

// What the values of maps point to is copied too: a write to the giver's is no write to
// the copy, and a write to the copy's is found.
func TestGiversMayChangeWhatMapsPointTo(t *testing.T) {
	type node struct {
		Text string
		Next *node
		At   *metav1.Time
	}
	type holder struct {
		Nodes  map[string]*node
		Deep   map[string]struct{ Lists []*node }
		Any    map[string]any
		Shared map[string]*node
	}
	noon := func() *metav1.Time { t := metav1.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC); return &t }
	given := func() *holder {
		ring, both := &node{Text: "ring"}, &node{Text: "both"}
		ring.Next = ring
		return &holder{
			Nodes:  map[string]*node{"a": {Text: "a", Next: &node{Text: "b"}, At: noon()}, "nil": nil, "ring": ring},
			Deep:   map[string]struct{ Lists []*node }{"a": {[]*node{{Text: "c"}, nil}}},
			Any:    map[string]any{"pod": pod("web"), "node": &node{Text: "d"}, "nil": (*node)(nil)},
			Shared: map[string]*node{"one": both, "two": both},
		}
	}
	changes := map[string]func(*holder){
		"a value":                   func(h *holder) { h.Nodes["a"].Text = "A" },
		"what a value leads to":     func(h *holder) { h.Nodes["a"].Next.Text = "B" },
		"a time":                    func(h *holder) { *h.Nodes["a"].At = metav1.Now() },
		"an element of a list":      func(h *holder) { h.Deep["a"].Lists[0].Text = "C" },
		"an object in an interface": func(h *holder) { h.Any["pod"].(*corev1.Pod).Spec.Containers[0].Image = "b:2" },
		"a map behind an interface": func(h *holder) { h.Any["pod"].(*corev1.Pod).Labels["app"] = "db" },
		"a struct in an interface":  func(h *holder) { h.Any["node"].(*node).Text = "D" },
		"a ring":                    func(h *holder) { h.Nodes["ring"].Text = "RING" },
	}
	s := session(t)
	h := given()
	got := frozen(t, s, "shop/h", h)
	for _, change := range changes {
		change(h)
	}
	if err := s.Check(); err != nil {
		t.Errorf("a change of the giver's own object was reported: %v", err)
	}
	limit := func(h *holder) string {
		return h.Any["pod"].(*corev1.Pod).Spec.Volumes[0].EmptyDir.SizeLimit.String()
	}
	want := given()
	if limit(got) != limit(want) || s.Check() != nil {
		t.Error("printing a quantity counts as a write")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the frozen object changed with the giver's: %+v", got)
	}
	if got.Shared["one"] != got.Shared["two"] || got.Nodes["ring"].Next != got.Nodes["ring"] {
		t.Error("what was one value is several")
	}
	for name, change := range changes {
		s := session(t)
		if change(frozen(t, s, "shop/h", given())); s.Check() == nil {
			t.Errorf("a write to %s of the frozen object was not found", name)
		}
	}
}
