package jsonout

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// wantSame fails unless an encoder has what encoding/json has.
func wantSame(t testing.TB, e *Encoder, object any) {
	t.Helper()
	want, wantErr := stock(t, object)
	got, err := e.Append([]byte("before"), object)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%T: error %v, encoding/json has %v", object, err, wantErr)
	}
	if err == nil && string(got) != "before"+string(want) {
		t.Fatalf("%T: got\n%s\nencoding/json has\n%s", object, got, want)
	}
}

// Objects that share parts at random, typed and untyped, one encoder for all.
func TestEncoderEqualsEncodingJSON(t *testing.T) {
	for seed := range int64(5) {
		e := NewEncoder()
		random, f := rand.New(rand.NewSource(seed)), filler(seed)
		var pods []*corev1.Pod
		for range 20 {
			p := &corev1.Pod{}
			f.Fill(p)
			if len(pods) > 0 && random.Intn(3) > 0 {
				other := pods[random.Intn(len(pods))]
				p.Labels, p.Annotations, p.Status = other.Labels, other.Annotations, other.Status
				p.Spec.Containers = other.Spec.Containers[:random.Intn(len(other.Spec.Containers)+1)] // begin at one address
				p.Spec.Affinity, p.Spec.Overhead = other.Spec.Affinity, other.Spec.Overhead
				p.ManagedFields = append(p.ManagedFields, other.ManagedFields...)
			}
			pods = append(pods, p)
			wantSame(t, e, p)
			raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
			if err != nil {
				t.Fatal(err)
			}
			list := []any{raw["spec"], raw["status"], raw["spec"]}
			raw["lists"] = []any{list, list[:1], list[:2], list}
			wantSame(t, e, &unstructured.Unstructured{Object: raw})
		}
		for range 40 {
			wantSame(t, e, pods[random.Intn(len(pods))])
		}
		e.Close()
	}
}

// A struct and its first field have one address, and so have a list and its first element.
func TestEncoderTellsTypesApart(t *testing.T) {
	type inner struct {
		Name string `json:"name,omitempty"`
		Text string `json:"text,omitempty"`
	}
	type outer struct {
		Inner inner  `json:"inner"`
		Other string `json:"other"`
	}
	type object struct {
		Outer *outer   `json:"outer"`
		Inner *inner   `json:"inner"`
		List  []inner  `json:"list"`
		First *inner   `json:"first"`
		Empty []inner  `json:"empty"`
		None  *inner   `json:"none"`
		Lists [][]bool `json:"lists"`
	}
	out, list := &outer{inner{"a", "the text of a"}, "another text"}, []inner{{"b", "the text of b"}, {"c", "the text of c"}}
	e := NewEncoder()
	defer e.Close()
	for range 4 {
		wantSame(t, e, &object{Outer: out, Inner: &out.Inner, List: list, First: &list[0], Empty: list[:0]})
		wantSame(t, e, &object{Outer: out, Inner: &out.Inner, List: list[:1], First: &list[0]})
	}
}

func TestEncoderForgetsOnClose(t *testing.T) {
	pod := wiretest.Replica("web", 1)
	for i := range 3 {
		pod.Spec.Containers[0].Image = fmt.Sprint("image-", i)
		e := NewEncoder()
		for range 4 {
			wantSame(t, e, pod)
		}
		e.Close()
		if len(e.w.parts.text) > 0 || e.w.parts.kept != [len(e.w.parts.kept)]part{} {
			t.Fatal("a closed encoder refers to objects")
		}
	}
}

// More parts, and larger ones, than are kept.
func TestEncoderIsBounded(t *testing.T) {
	e := NewEncoder()
	defer e.Close()
	var pods []*corev1.Pod
	for i := range 100 {
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"number": fmt.Sprint(i), "long": strings.Repeat("x", 50_000)}},
			Spec:       corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: fmt.Sprint(i), Value: "a value"}}},
		})
	}
	pods[7].Labels["huge"] = strings.Repeat("x", mostText)
	for range 4 {
		for _, p := range pods {
			wantSame(t, e, p)
			if n := len(e.w.parts.text); n > mostText {
				t.Fatalf("%d bytes are kept", n)
			}
		}
	}
}

// What could not be encoded is not remembered as something else.
func TestEncoderAfterErrors(t *testing.T) {
	e := NewEncoder()
	defer e.Close()
	bad := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "value": []any{"a text that is long", math.NaN()}}}
	good := wiretest.Replica("web", 1)
	for range 4 {
		wantSame(t, e, bad)
		wantSame(t, e, good)
	}
}

// Objects of a ReplicaSet that share their parts.
func BenchmarkEncoder(b *testing.B) {
	first := wiretest.Replica("web", 0)
	pods := make([]*corev1.Pod, 100)
	for i := range pods {
		p := *first
		p.Name = fmt.Sprint("web-", i)
		pods[i] = &p
	}
	e := NewEncoder()
	defer e.Close()
	var buf []byte
	for i := 0; b.Loop(); i++ {
		buf, _ = e.Append(buf[:0], pods[i%len(pods)])
	}
	b.SetBytes(int64(len(buf)))
}
