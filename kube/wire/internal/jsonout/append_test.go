package jsonout

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// stock is what the object is for encoding/json.
func stock(t testing.TB, object any) ([]byte, error) {
	t.Helper()
	if u, ok := object.(*unstructured.Unstructured); ok {
		raw, err := u.MarshalJSON()
		return bytes.TrimSpace(raw), err
	}
	return json.Marshal(object)
}

func wantStock(t testing.TB, object any) {
	t.Helper()
	want, wantErr := stock(t, object)
	got, err := Append([]byte("before"), object)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%T: error %v, encoding/json has %v", object, err, wantErr)
	}
	if err == nil && string(got) != "before"+string(want) {
		t.Fatalf("%T: got\n%s\nencoding/json has\n%s", object, got, want)
	}
}

// fieldSets are valid.
var fieldSets = []string{
	`{"f:spec": {"<": {}}}`, `{}`, `{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}},"f:phase":{}}}`,
	`{"a":1}`, `{"é":{}}`, `{"a\u003c":{},"b\\":{}}`, `null`, `[]`, `{"a":{},"b":{"c":{}},"d":{}}`, `{"a":{}}  `,
}

// Any text is taken as encoding/json takes it, and refused as it refuses it.
func FuzzFieldSet(f *testing.F) {
	for _, s := range fieldSets {
		f.Add(s)
	}
	for _, s := range []string{``, `{`, `{"a":{}`, `{"a":{},}`, `{,"a":{}}`, `{"a"{}}`, `{"a":{}"b":{}}`, `{}}`, `{{}}`, `{"a":{}}{}`, `{"a\":{}}`, `{"a":{}},`, `{"`, `{"a":`, `{"":{"":{}},"":{}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := &metav1.ManagedFieldsEntry{FieldsV1: &metav1.FieldsV1{}}
		e.FieldsV1.SetRawString(s)
		wantStock(t, e)
	})
}

// filler fills objects of any type with random values.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1e6), resource.DecimalSI)
		},
		func(m *metav1.Time, c randfill.Continue) {
			if c.Bool() {
				*m = metav1.Unix(c.Int63n(4e9), 0)
			}
		},
		func(m *metav1.MicroTime, c randfill.Continue) {
			*m = metav1.MicroTime{Time: time.UnixMicro(c.Int63n(4e15))}
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString(fieldSets[c.Intn(len(fieldSets))]) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a": "<b>"}`) },
	)
}

func TestAppendEqualsEncodingJSON(t *testing.T) {
	for seed := range int64(200) {
		f := filler(seed)
		for _, object := range []any{
			&corev1.Pod{}, &corev1.Node{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Event{},
			&appsv1.Deployment{}, &appsv1.StatefulSet{}, &networkingv1.Ingress{}, &metav1.PartialObjectMetadata{}, &odd{private: 1},
		} {
			f.Fill(object)
			wantStock(t, object)
			if raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object); err == nil {
				wantStock(t, &unstructured.Unstructured{Object: raw})
			}
		}
	}
	wantStock(t, wiretest.Replica("web", 1))
	var none *corev1.Pod
	wantStock(t, none)
}

// odd has what encoding/json has rules of its own for.
type odd struct {
	metav1.TypeMeta `json:",inline"`
	Twice           string `json:"kind,omitempty"`
	Number          float64
	Unsigned        uint16 `json:"unsigned,omitempty"`
	Quoted          int64  `json:"quoted,string"`
	Escaped         string `json:"a<b"`
	Hidden          string `json:"-"`
	//lint:ignore SA5008 the rule is what is tested
	Dash      string            `json:"-,"`
	Bytes     []byte            `json:"bytes"`
	Array     [2]int            `json:"array"`
	Any       map[int]string    `json:"any"`
	Nested    *odd              `json:"nested,omitempty"`
	Duration  metav1.Duration   `json:"duration"`
	Durations []metav1.Duration `json:"durations"`
	private   int
}

func TestAppendUnstructuredValues(t *testing.T) {
	deep := any("end")
	for range 800 {
		deep = map[string]any{"a": []any{deep}}
	}
	for name, value := range map[string]any{
		"numbers": []any{int64(1), 1.5, 1e30, math.Copysign(0, -1), int(3), int32(4), json.Number("12")}, "nothing": nil, "map": map[string]any(nil), "list": []any(nil),
		"empty": map[string]any{}, "texts": []string{"a"}, "deep": deep, "not a number": math.NaN(), "channel": make(chan int),
	} {
		t.Run(name, func(t *testing.T) {
			wantStock(t, &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "value": value}})
		})
	}
	wantStock(t, &unstructured.Unstructured{})
}

func TestAppendText(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	alphabet := []string{"a", "bcdefghi", `"`, `\`, "<", ">", "&", "\n", "\x00", "\x1f", "\x7f", "é", "世", "😀", "\xff", "\xc3", "\u2028", "\u2029", "\ufffd", " "}
	for range 5000 {
		var s strings.Builder
		for range random.Intn(20) {
			s.WriteString(alphabet[random.Intn(len(alphabet))])
		}
		wantStock(t, &corev1.EnvVar{Name: s.String()})
	}
}

func FuzzAppendText(f *testing.F) {
	f.Add("a \"text\" <with> \\ é\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) { wantStock(t, &corev1.EnvVar{Name: s, Value: s + s}) })
}

// A type that many goroutines meet first at the same time, and that has itself as a part.
func TestAppendFirstSeenByMany(t *testing.T) {
	type tree struct {
		Name     string           `json:"name,omitempty"`
		Children []*tree          `json:"children,omitempty"`
		ByName   map[string]*tree `json:"byName,omitempty"`
	}
	object := &tree{Name: "a", Children: []*tree{{Name: "b"}, nil}, ByName: map[string]*tree{"c": {Name: "c"}}}
	var working sync.WaitGroup
	for range 16 {
		working.Go(func() {
			got, err := Append(nil, object)
			want, _ := json.Marshal(object)
			if err != nil || string(got) != string(want) {
				t.Errorf("got %s, %v; want %s", got, err, want)
			}
		})
	}
	working.Wait()
}

func BenchmarkAppendJSON(b *testing.B) {
	pod := wiretest.Replica("web", 1)
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		b.Fatal(err)
	}
	for name, object := range map[string]any{"typed": pod, "unstructured": &unstructured.Unstructured{Object: raw}} {
		size, _ := stock(b, object)
		b.Run(name+"/tarn", func(b *testing.B) {
			b.SetBytes(int64(len(size)))
			var buf []byte
			for b.Loop() {
				buf, _ = Append(buf[:0], object)
			}
		})
		b.Run(name+"/stock", func(b *testing.B) {
			b.SetBytes(int64(len(size)))
			for b.Loop() {
				_, _ = stock(b, object)
			}
		})
	}
}
