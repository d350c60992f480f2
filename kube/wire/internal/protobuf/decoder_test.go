package protobuf

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// marshaler is what generated protobuf code has.
// protobufTypes are all types of client-go's scheme that have a protobuf form, and
// the type with the deepest messages.
func protobufTypes() []reflect.Type {
	types := map[reflect.Type]bool{
		reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](): true,
		reflect.TypeFor[metav1.PartialObjectMetadata]():             true,
	}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		if reflect.PointerTo(t).Implements(unmarshalerType) {
			types[t] = true
		}
	}
	var sorted []reflect.Type
	for t := range types {
		sorted = append(sorted, t)
	}
	slices.SortFunc(sorted, func(a, b reflect.Type) int {
		return strings.Compare(a.PkgPath()+a.Name(), b.PkgPath()+b.Name())
	})
	return sorted
}

// newFiller makes random values that can be marshaled.
func newFiller(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1<<40), resource.DecimalSI)
		},
		func(t *metav1.Time, c randfill.Continue) { t.Time = time.Unix(c.Int63n(1<<32), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			t.Time = time.Unix(c.Int63n(1<<32), c.Int63n(1e6)*1000)
		},
		func(o *runtime.Object, c randfill.Continue) {},
		func(e *runtime.RawExtension, c randfill.Continue) { e.Raw = []byte(`{"a":"b"}`) },
	)
}

func newProtobuf(t testing.TB, of reflect.Type, opts pool.Options) *Decoder {
	t.Helper()
	if err := shape.CheckDrop(of, opts.Drop); err != nil {
		t.Fatal(err)
	}
	d := New(of, opts)
	if d == nil {
		t.Fatalf("%v has no protobuf form", of)
	}
	return d
}

func stockProtobuf(of reflect.Type, raw []byte) (any, error) {
	v := reflect.New(of)
	err := v.Interface().(unmarshaler).Unmarshal(raw)
	return v.Interface(), err
}

// protobufFast says whether the fast path decodes an object.
func protobufFast(d *Decoder, raw []byte) bool {
	r := reader{pool: d.opts.Pool, decoder: d}
	return r.object(d.plan.root, raw, reflect.New(d.objectType).UnsafePointer())
}

func TestProtobufEveryType(t *testing.T) {
	parts := pool.New()
	filler := newFiller(1)
	for _, of := range wiretest.Some(protobufTypes()) {
		t.Run(of.String(), func(t *testing.T) {
			shared := newProtobuf(t, of, pool.Options{Pool: parts, SharedMetadata: true})
			private := newProtobuf(t, of, pool.Options{Pool: parts})
			alone := newProtobuf(t, of, pool.Options{})
			var kept, copies []any
			for round := range 12 {
				original := reflect.New(of)
				if round > 0 { // the first is empty
					filler.Fill(original.Interface())
				}
				raw := wiretest.Marshal(t, original.Interface())
				want, err := stockProtobuf(of, raw)
				if err != nil {
					t.Fatal(err)
				}
				for again := range 3 {
					for _, d := range []*Decoder{shared, private, alone} {
						got, err := d.Decode(slices.Clone(raw))
						if err != nil {
							t.Fatal(err)
						}
						if !reflect.DeepEqual(got, want) {
							t.Fatalf("time %d: got\n%#v, want\n%#v", again, got, want)
						}
						checkCapacity(t, reflect.ValueOf(got))
						kept, copies = append(kept, got), append(copies, want)
					}
				}
				if !protobufFast(shared, raw) && shared.plan.root.state.Load() != decodesItself {
					t.Error("a well-formed object is left to the stock decoder")
				}
			}
			if !reflect.DeepEqual(kept, copies) {
				t.Error("objects changed after they were decoded")
			}
		})
	}
}

// checkCapacity looks for slices with spare capacity: an append would write into
// memory that others may share.
func checkCapacity(t testing.TB, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			checkCapacity(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				checkCapacity(t, v.Field(i))
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			checkCapacity(t, v.MapIndex(k))
		}
	case reflect.Slice:
		if v.Cap() != v.Len() {
			t.Errorf("a %v of %d has room for %d", v.Type(), v.Len(), v.Cap())
		}
		for i := range v.Len() {
			checkCapacity(t, v.Index(i))
		}
	}
}

// Most types are decoded by their plan; the exceptions are listed.
func TestProtobufPlans(t *testing.T) {
	for _, of := range protobufTypes() {
		var found []string
		collectOwn(newProtobuf(t, of, pool.Options{}).plan.root, map[reflect.Type]bool{}, &found)
		for _, name := range found {
			if !selfDecoding[name] {
				t.Errorf("%v: %s decodes itself", of, name)
			}
		}
	}
}

var selfDecoding = map[string]bool{
	"v1.MicroTime": true, "v1.Time": true, "resource.Quantity": true,
	// Types with a list or map that is a message of its own:
	"v1.APIResource": true, "v1.UserInfo": true, "v1beta1.UserInfo": true,
	"v1.SubjectAccessReviewSpec": true, "v1beta1.SubjectAccessReviewSpec": true,
	"v1.TokenRequestSpec":              true,
	"v1.CertificateSigningRequestSpec": true, "v1beta1.CertificateSigningRequestSpec": true,
}

func collectOwn(n *node, seen map[reflect.Type]bool, found *[]string) {
	if seen[n.typ] {
		return
	}
	seen[n.typ] = true
	if n.state.Load() == decodesItself {
		*found = append(*found, n.typ.String())
		return
	}
	for i := range n.fields {
		if f := &n.fields[i]; f.kind != kindUnknown && f.message != nil {
			collectOwn(f.child(), seen, found)
		}
	}
}

// A type whose Unmarshal does more than its tags say decodes itself.
type upperCased struct {
	Text string `protobuf:"bytes,1,opt,name=text" json:"text"`
}

func (l *upperCased) Unmarshal(raw []byte) error {
	l.Text = strings.ToUpper(string(raw[2:]))
	return nil
}

type upperCasedList struct {
	Words []upperCased `protobuf:"bytes,1,rep,name=words" json:"words"`
}

func (s *upperCasedList) Unmarshal(raw []byte) error {
	for len(raw) > 0 {
		var l upperCased
		if err := l.Unmarshal(raw[2 : 2+raw[1]]); err != nil {
			return err
		}
		s.Words = append(s.Words, l)
		raw = raw[2+raw[1]:]
	}
	return nil
}

func TestProtobufPlanIsProven(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[upperCasedList](), pool.Options{Pool: pool.New()})
	for i := range 5 {
		got, err := d.Decode([]byte("\x0a\x04\x0a\x02hi\x0a\x04\x0a\x02yo"))
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.(*upperCasedList).Words); text != "[{HI} {YO}]" {
			t.Errorf("time %d: %s", i, text)
		}
	}
}

func TestProtobufRandomBytes(t *testing.T) {
	types := wiretest.Some(protobufTypes())
	random := rand.New(rand.NewSource(1))
	filler := newFiller(2)
	parts := pool.New()
	for _, of := range types {
		d := newProtobuf(t, of, pool.Options{Pool: parts})
		for range 8 {
			original := reflect.New(of)
			filler.Fill(original.Interface())
			raw := wiretest.Marshal(t, original.Interface())
			if len(raw) == 0 {
				continue
			}
			for range 3 {
				switch at := random.Intn(len(raw)); random.Intn(4) {
				case 0:
					raw = raw[:at+1]
				case 1:
					raw = append(raw, raw[at:]...)
				default:
					raw[at] ^= 1 << random.Intn(8)
				}
				wantStockProtobuf(t, d, raw)
			}
		}
	}
}

// wantStockProtobuf compares d with the stock decoder on raw.
func wantStockProtobuf(t testing.TB, d *Decoder, raw []byte) {
	t.Helper()
	wantStock(t, d, d.Decode, raw)
	var last any
	for _, event := range []Event{Added, Modified, Deleted} {
		wantStock(t, d, func(raw []byte) (any, error) {
			object, err := d.DecodeAt(event, raw, func(_, _ string) any { return last })
			last = object
			return object, err
		}, raw)
	}
}

func wantStock(t testing.TB, d *Decoder, decode func([]byte) (any, error), raw []byte) {
	t.Helper()
	got, err := decode(slices.Clone(raw))
	if d.plan.root.tooDeep(raw, maxDepth) {
		if err == nil {
			t.Errorf("%v: deeper than the limit, and no error: %x", d.objectType, raw)
		}
		return
	}
	want, wantErr := stockOrPanic(d.objectType, raw)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%v: error %v, the stock decoder's is %v: %x", d.objectType, err, wantErr, raw)
	}
	if err != nil {
		if !strings.Contains(err.Error(), wantErr.Error()) {
			t.Errorf("%v: error %v, the stock decoder's is %v", d.objectType, err, wantErr)
		}
		return
	}
	if !reflect.DeepEqual(got, want) {
		again, _ := stockOrPanic(d.objectType, raw)
		if reflect.DeepEqual(want, again) { // no NaN
			t.Fatalf("%v: got\n%#v, want\n%#v: %x", d.objectType, got, want, raw)
		}
	}
}

// stockOrPanic is the stock decoder, whose panics are errors too.
func stockOrPanic(of reflect.Type, raw []byte) (object any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return stockProtobuf(of, raw)
}
