package ondisk

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// filler fills objects with random values of all kinds.
type filler struct{ *rand.Rand }

var oddTexts = []string{"", "a", "web-1", "<&>", "\"\\\n\t", "é€𝄞", "\u2028", "\x00\x1f\x7f", "bad \xff utf-8", "10.0.0.7"}

func (f filler) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		if f.IntN(3) > 0 {
			*p = metav1.Unix(f.Int64N(1<<33)-1<<31, 0)
		}
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.UnixMicro(f.Int64N(1 << 50)))
		return
	case *resource.Quantity:
		if *p = (resource.Quantity{}); f.IntN(4) > 0 {
			*p = *resource.NewMilliQuantity(f.Int64N(1<<40), []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}[f.IntN(3)])
		}
		return
	case *intstr.IntOrString:
		if *p = intstr.FromInt32(f.Int32()); f.IntN(2) == 0 {
			*p = intstr.FromString(oddTexts[f.IntN(len(oddTexts))])
		}
		return
	case *runtime.RawExtension:
		p.Raw = []byte(`{"a":1}`)
		return
	case *metav1.FieldsV1:
		p.SetRawBytes([]byte(`{"f:a":{}}`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(oddTexts[f.IntN(len(oddTexts))])
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 42, 1 << 31, -1 << 31}[f.IntN(6)])
	case reflect.Float64:
		v.SetFloat(f.Float64())
	case reflect.Pointer:
		if depth > 0 && f.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		for range f.IntN(3) {
			if depth > 0 || v.Type().Elem().Kind() == reflect.Uint8 {
				element := reflect.New(v.Type().Elem()).Elem()
				if element.Kind() == reflect.Uint8 {
					element.SetUint(f.Uint64N(256))
				} else {
					f.fill(element, depth-1)
				}
				v.Set(reflect.Append(v, element))
			}
		}
	case reflect.Map:
		for range f.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, 0)
			f.fill(value, depth-1)
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && (depth > 0 || f.IntN(4) == 0) {
				f.fill(v.Field(i), depth-1)
			}
		}
	}
}

// The JSON that is made of protobuf is that of the decoded object, for all types of
// Kubernetes that can be transcoded.
func TestTranscodedJSON(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(5, 7))}
	known, unknown := 0, 0
	for gvk, of := range scheme.Scheme.AllKnownTypes() {
		s := shapeOf(of)
		if _, ok := reflect.New(of).Interface().(message); !ok {
			continue
		}
		if s == nil {
			unknown++
			continue
		}
		known++
		coder := &transcoder{}
		for range 20 {
			v := reflect.New(of)
			f.fill(v.Elem(), 8)
			raw, err := v.Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
			must(t, err)
			decoded := reflect.New(of).Interface()
			must(t, decoded.(unmarshaler).Unmarshal(raw))
			want, err := json.Marshal(decoded)
			must(t, err)
			got, err := coder.message(nil, s, raw)
			if err != nil {
				t.Fatalf("%v: %v: %s", gvk, err, want)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%v: transcoded as\n%s, want\n%s", gvk, got, want)
			}
		}
	}
	t.Logf("%d types are transcoded, %d are decoded", known, unknown)
	for _, of := range []any{corev1.Pod{}, corev1.Node{}, corev1.Service{}, appsv1.Deployment{}} {
		if shapeOf(reflect.TypeOf(of)) == nil {
			t.Errorf("a %T cannot be transcoded", of)
		}
	}
}

// A message that is damaged, or that generated code would not write, is refused, or gives the
// same result as the decoded object.
func FuzzTranscode(f *testing.F) {
	fill := filler{rand.New(rand.NewPCG(1, 1))}
	for range 20 {
		pod := &corev1.Pod{}
		fill.fill(reflect.ValueOf(pod).Elem(), 6)
		raw, err := pod.Marshal()
		must(f, err)
		f.Add(raw)
	}
	s := shapeOf(reflect.TypeFor[corev1.Pod]())
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := (&transcoder{}).message(nil, s, raw)
		if err != nil {
			return
		}
		pod := &corev1.Pod{}
		if pod.Unmarshal(raw) != nil {
			return // what the codec wrote can be decoded
		}
		want, err := json.Marshal(pod)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("transcoded as\n%s, want\n%s, %v", got, want, err)
		}
	})
}

// The parts of an object of the past are the same, whether they are transcoded or decoded.
func TestTranscodedParts(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(3, 9))}
	of := kube.Origin{Object: reflect.TypeFor[*corev1.Pod](), Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: corev1.SchemeGroupVersion.WithResource("pods")}
	wide := wideFieldsOf(of, true)
	wide.unsummed = true
	coder := partCoders(of.Object.Elem(), wide.fields).Get().(*partCoder)
	pod := &corev1.Pod{}
	for i := range 300 {
		if i%3 == 0 { // else the spec is that before
			pod = &corev1.Pod{}
			f.fill(reflect.ValueOf(pod).Elem(), 8)
			pod.ResourceVersion = []string{"", "4711", "a<b"}[f.IntN(3)]
		}
		f.fill(reflect.ValueOf(&pod.Status).Elem(), 6)
		raw, err := pod.Marshal()
		must(t, err)
		decoded := &corev1.Pod{}
		must(t, decoded.Unmarshal(raw))
		var row sqlite.Row
		must(t, wide.add(&row, decoded, raw))
		want, err := partsOf(row)
		must(t, err)
		got, err := coder.render(raw)
		must(t, err)
		for name := range want {
			if string(got[name]) != string(want[name]) {
				t.Fatalf("%s is\n%s, want\n%s", name, got[name], want[name])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d parts, want %d", len(got), len(want))
		}
	}
}
