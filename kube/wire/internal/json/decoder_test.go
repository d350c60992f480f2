package json

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

var (
	podType     = reflect.TypeFor[*corev1.Pod]()
	untypedType = reflect.TypeFor[*unstructured.Unstructured]()
	partialType = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

func newJSON(t testing.TB, of reflect.Type, opts pool.Options) *Decoder {
	t.Helper()
	if err := shape.CheckDrop(of.Elem(), opts.Drop); err != nil {
		t.Fatal(err)
	}
	return New(of.Elem(), opts)
}

// stockJSONOf is what client-go decodes raw to.
func stockJSONOf(of reflect.Type, raw []byte) (any, error) {
	object := reflect.New(of.Elem()).Interface()
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u, utiljson.Unmarshal(raw, &u.Object)
	}
	return object, utiljson.Unmarshal(raw, object)
}

// wantStockJSON decodes raw and compares value and error with the stock decoder's.
func wantStockJSON(t testing.TB, d *Decoder, raw []byte) any {
	t.Helper()
	given := string(raw)
	got, err := d.Decode(raw)
	if string(raw) != given {
		t.Fatalf("the bytes of %s were written to", given)
	}
	want, wantErr := stockJSONOf(reflect.PointerTo(d.objectType), raw)
	switch {
	case fmt.Sprint(err) != fmt.Sprint(wantErr):
		t.Fatalf("%q:\n got error %v\nwant error %v", raw, err, wantErr)
	case err == nil && !reflect.DeepEqual(got, want):
		t.Fatalf("%q:\n got %#v\nwant %#v", raw, got, want)
	}
	return got
}

// fast says whether raw is decoded without the stock decoder.
func fast(d *Decoder, raw []byte) bool {
	_, ok := d.fast(raw)
	return ok
}

// TestJSONEveryType decodes random objects of every type that client-go knows, with
// parts that are new and with parts that are known, as their type and as
// unstructured.
func TestJSONEveryType(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	parts := pool.New()
	untyped := newJSON(t, untypedType, pool.Options{Pool: parts})
	types := scheme.Scheme.AllKnownTypes()
	kinds := make([]string, 0, len(types))
	byName := map[string]reflect.Type{}
	for gvk, of := range types {
		kinds = append(kinds, gvk.String())
		byName[gvk.String()] = of
	}
	slices.Sort(kinds)
	slow := map[string]int{}
	for _, kind := range wiretest.Some(kinds) {
		d := newJSON(t, reflect.PointerTo(byName[kind]), pool.Options{Pool: parts})
		for round := range 3 {
			fill.NilChance(float64(round)/5).NumElements(0, 3).MaxDepth(10)
			object := reflect.New(byName[kind]).Interface()
			fill.Fill(object)
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(kind, err)
			}
			for range 2 {
				wantStockJSON(t, d, raw)
				wantStockJSON(t, untyped, raw)
			}
			if _, err := stockJSONOf(reflect.PointerTo(byName[kind]), raw); err == nil && (!fast(d, raw) || !fast(untyped, raw)) {
				slow[kind]++
			}
		}
	}
	if len(slow) > 0 {
		t.Errorf("left to the stock decoder without need: %v", slow)
	}
}

// everyKind is a type with one field of each kind that JSON decoding distinguishes.
type everyKind struct {
	Bool     bool              `json:"bool"`
	Int8     int8              `json:"int8"`
	Int32    int32             `json:"int32"`
	Int64    int64             `json:"int64"`
	Uint8    uint8             `json:"uint8"`
	Uint64   uint64            `json:"uint64"`
	Float32  float32           `json:"float32"`
	Float64  float64           `json:"float64"`
	String   string            `json:"string"`
	Bytes    []byte            `json:"bytes"`
	Any      any               `json:"any"`
	Texts    []string          `json:"texts"`
	Labels   map[string]string `json:"labels"`
	Time     metav1.Time       `json:"time"`
	BoolPtr  *bool             `json:"boolPtr"`
	Int32Ptr *int32            `json:"int32Ptr"`
	TextPtr  *string           `json:"textPtr"`
	Self     *everyKind        `json:"self"`
	List     []everyKind       `json:"list"`
}

// jsonSnippets are values that are easy to get wrong.
var jsonSnippets = []string{
	`null`, `true`, `false`, `tru`, `nul`, `True`, `nullx`,
	`0`, `-0`, `1`, `-1`, `01`, `-`, `+1`, `1.0`, `1.`, `.5`, `1e3`, `1E+3`, `1e`, `1e-400`, `1e400`, `0x10`, `1_000`, `Infinity`, `NaN`,
	`127`, `128`, `-128`, `-129`, `255`, `256`, `2147483647`, `2147483648`, `-2147483649`,
	`999999999999999999`, `1000000000000000000`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`,
	`18446744073709551615`, `18446744073709551616`, `123456789012345678901234567890`, `3.4e39`, `16777217`, `0.1`,
	`""`, `"a"`, `"1"`, `"true"`, `"null"`, `"YWJj"`, `"YWJ"`, `"YW\nJj"`, `"\u0059WJj"`, `"é"`, `"日本"`, `"😀"`,
	`"\u0000"`, `"\u00e9"`, `"\uD83D\uDE00"`, `"\uD83D"`, `"\uDE00\uD83D"`, `"\uD83Dx"`, `"\uD83D\u0041"`, `"\u12"`, `"\u12G4"`, `"\uABCd"`,
	`"\"\\\/\b\f\n\r\t"`, `"\x"`, `"\'"`, `"\`, `"`, `"abc`, "\"a\tb\"", "\"a\x00b\"", "\"a\x7fb\"", "\"\xff\"", "\"a\xc3\"", "\"\xed\xa0\x80\"", `"\uFFFD"`,
	`"a long text with <html> & more than thirty-two bytes"`, `"a long text, \"quoted\" and \u003cescaped\u003e at the end\\"`,
	`[]`, `[ ]`, `[1]`, `[1,2]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `[1`, `[null]`, `[[]]`, `["a","b"]`, `["a",null]`, `["a",1]`, `[{}]`, `[1}`,
	`{}`, `{ }`, `{"a":1}`, `{"a":"b"}`, `{"a":null}`, `{"a":"b","a":"c"}`, `{"a":"b","\u0061":"c"}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{'a':1}`, `{"a":1]`, `{"a" : "b" , "c":"d"}`,
	`{"bool":true,"unknown":{"x":[1,{"y":"\u0041"}]},"int32":5}`, `{"Bool":true,"INT32":5}`, `{"bool":true,"bool":false}`, `{"unknown":1,"unknown":2}`, `{"unknown":"\x"}`, "{\"unknown\":\"\xff\"}", `{"unknown":01}`, `{"unknown":{"a":1,"a":2}}`,
	`{"b\u006fol":true}`, `{"self":{"self":{"int8":1}}}`, `{"list":[{"int8":1},null,{"labels":{"a":"b"}}]}`,
	`"2024-01-02T03:04:05Z"`, `"2024-01-02T03:04:05.678+02:00"`, `"2024-01-02T03:04:05"`, `"2024-01-02"`, `"\u0032024-01-02T03:04:05Z"`,
	`"5m"`, `"1Gi"`, `" 1 "`, `"1e3"`, `"+1"`, `"0.5"`, `"12e6"`,
}

func TestJSONNasty(t *testing.T) {
	typed := newJSON(t, reflect.TypeFor[*everyKind](), pool.Options{Pool: pool.New()})
	untyped := newJSON(t, untypedType, pool.Options{Pool: pool.New()})
	of := reflect.TypeFor[everyKind]()
	for _, snippet := range jsonSnippets {
		documents := []string{snippet, " \t\r\n" + snippet + " \n", snippet + "x", snippet + "{}", "\ufeff" + snippet}
		for i := range of.NumField() {
			name := of.Field(i).Tag.Get("json")
			documents = append(documents, fmt.Sprintf(`{%q:%s}`, name, snippet), fmt.Sprintf("{ %q\n: %s\t, \"int64\":7}", name, snippet),
				fmt.Sprintf(`{"self":{%q:%s},"list":[{},{%q:%s}]}`, name, snippet, name, snippet))
		}
		for _, document := range wiretest.Some(documents) {
			for range 2 {
				wantStockJSON(t, typed, []byte(document))
				wantStockJSON(t, untyped, []byte(document))
			}
		}
	}
	wantStockJSON(t, typed, nil)
	wantStockJSON(t, untyped, []byte(" "))
}

const somePod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","namespace":"shop","uid":"6183faa1-150c-4e63-8c5f-4c9eefeacb39","resourceVersion":"29963",` +
	`"creationTimestamp":"2026-11-15T00:20:18Z","labels":{"app":"web","tier":"front"},"annotations":{"note":"a \"quoted\" \u003cnote\u003e"},` +
	`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"336a4d4e","controller":true}],` +
	`"managedFields":[{"manager":"kubelet","operation":"Update","time":"2026-11-15T00:21:02Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"k:{\"type\":\"Ready\"}":{".":{}}}}}]},` +
	`"spec":{"containers":[{"name":"main","image":"registry/web:1","env":[{"name":"A","value":"b"},{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}],` +
	`"resources":{"limits":{"memory":"1Gi"},"requests":{"cpu":"150m"}},"livenessProbe":{"httpGet":{"path":"/","port":"http"},"periodSeconds":10}}],` +
	`"terminationGracePeriodSeconds":30,"priority":0,"enableServiceLinks":true,"nodeName":"node-1"},` +
	`"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-15T00:21:35Z"}],"podIP":"10.0.0.1","startTime":"2026-11-15T00:21:35Z"}}`

func TestJSONTruncatedAndBroken(t *testing.T) {
	for _, of := range []reflect.Type{podType, untypedType, partialType} {
		d := newJSON(t, of, pool.Options{Pool: pool.New()})
		for range 2 {
			wantStockJSON(t, d, []byte(somePod))
		}
		if !fast(d, []byte(somePod)) {
			t.Errorf("%v: an ordinary pod was left to the stock decoder", of)
		}
		for n := range somePod {
			if wiretest.RaceEnabled && n%16 != 0 {
				continue
			}
			wantStockJSON(t, d, []byte(somePod[:n]))
			if n%3 != 0 {
				continue
			}
			wantStockJSON(t, d, []byte(somePod[:n]+"\x01"+somePod[n+1:]))
			wantStockJSON(t, d, []byte(somePod[:n]+"}"+somePod[n+1:]))
			wantStockJSON(t, d, []byte(somePod[:n]+`"`+somePod[n:]))
		}
	}
}

// TestJSONDepth nests as deep as the stock decoder allows, and deeper; hashing what is
// nested at each level would take minutes.
func TestJSONDepth(t *testing.T) {
	typed := newJSON(t, reflect.TypeFor[*everyKind](), pool.Options{Pool: pool.New()})
	untyped := newJSON(t, untypedType, pool.Options{Pool: pool.New()})
	for _, n := range wiretest.Some([]int{maxDepth, 10, maxDepth - 2, maxDepth - 1, maxDepth + 1, 9998, 10001, 200_000}) {
		for _, around := range [][2]string{{`{"self":`, `}`}, {`{"any":`, `}`}, {`{"unknown":[`, `]}`}, {`{"any":[`, `]}`}} {
			raw := []byte(strings.Repeat(around[0], n) + "null" + strings.Repeat(around[1], n))
			wantStockJSON(t, typed, raw)
			wantStockJSON(t, untyped, raw)
		}
	}
}

func FuzzJSONTyped(f *testing.F) {
	f.Add([]byte(somePod))
	for _, snippet := range jsonSnippets {
		f.Add([]byte(`{"list":[{"self":` + snippet + `,"any":` + snippet + `,"labels":{"a":` + snippet + `}}]}`))
	}
	pod := newJSON(f, podType, pool.Options{Pool: pool.New()})
	kinds := newJSON(f, reflect.TypeFor[*everyKind](), pool.Options{Pool: pool.New()})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for range 2 {
			wantStockJSON(t, pod, raw)
			wantStockJSON(t, kinds, raw)
		}
	})
}

func FuzzJSONUnstructured(f *testing.F) {
	f.Add([]byte(somePod))
	for _, snippet := range jsonSnippets {
		f.Add([]byte(`{"a":[` + snippet + `,{"b":` + snippet + `}]}`))
	}
	untyped := newJSON(f, untypedType, pool.Options{Pool: pool.New()})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for range 2 {
			wantStockJSON(t, untyped, raw)
		}
	})
}
