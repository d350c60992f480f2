package json

//lint:file-ignore SA5008 odd tags are what is tested
//lint:file-ignore U1000 fields that nobody can set are too

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

type (
	upperText string // upper case, by its own decoder
	lowerText string // lower case, from text
	truth     bool
	speaker   interface{ Speak() }
	labelSet  map[string]string
	free      map[string]any
	Promoted  struct{ One, Two int }
	Second    struct{ Two, Three int }
	hidden    struct{ Four int }
	stamp     struct{ metav1.Time } // has UnmarshalJSON by embedding
	recursive struct {
		Name string                `json:"name"`
		Next *recursive            `json:"next"`
		All  []recursive           `json:"all"`
		By   map[string]*recursive `json:"by"`
	}
)

func (s *upperText) UnmarshalJSON(b []byte) error {
	if string(b) == `"bad"` {
		return errors.New("bad upperText")
	}
	*s = upperText(strings.ToUpper(string(b)))
	return nil
}

func (w *lowerText) UnmarshalText(b []byte) error {
	if string(b) == "bad" {
		return errors.New("bad lowerText")
	}
	*w = lowerText(strings.ToLower(string(b)))
	return nil
}

type (
	inlined struct {
		Promoted `json:",inline"`
		Named    Second `json:"named"`
		Own      string `json:"own"`
	}
	ambiguous struct {
		Promoted
		Second
		Two_ string `json:"2"`
	}
	tagged struct {
		A string `json:"x"`
		Promoted
		B string `json:"Three"`
		Second
	}
	viaPointer struct {
		*Promoted
		*Second `json:"second"`
		Rest    string
	}
	viaHidden struct {
		hidden
		Rest string
	}
	viaHiddenPointer struct {
		*hidden
		Rest string
	}
	hiddenNamed struct {
		hidden `json:"hidden"`
		Rest   string
	}
	twice struct {
		Left, Right string
	}
	both struct {
		left
		right
	}
	bothAndMore struct {
		left
		right
		Rest string
	}
	left    struct{ twice }
	right   struct{ twice }
	options struct {
		Int    int      `json:"int,string"`
		Bool   bool     `json:"bool,string,omitempty"`
		Float  float64  `json:",string"`
		Text   string   `json:"text,string"`
		Ptr    *int     `json:"ptr,string"`
		List   []string `json:"list,string"`
		Skip   string   `json:"-"`
		Dash   string   `json:"-,"`
		Odd    string   `json:"o\"dd"`
		HTML   string   `json:"<&>"`
		lower  string
		Umlaut string `json:"ümlaut"`
	}
)

// jsonTypes are types with decoding rules of their own.
var jsonTypes = []reflect.Type{
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[*metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[*metav1.MicroTime](),
	reflect.TypeFor[metav1.Duration](), reflect.TypeFor[*metav1.Duration](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[*resource.Quantity](),
	reflect.TypeFor[map[string]resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[*intstr.IntOrString](),
	reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[*metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[[]runtime.RawExtension](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[stamp](), reflect.TypeFor[*stamp](),
	reflect.TypeFor[upperText](), reflect.TypeFor[*upperText](), reflect.TypeFor[[]upperText](), reflect.TypeFor[map[upperText]upperText](), reflect.TypeFor[struct{ upperText }](), reflect.TypeFor[struct{ stamp }](), reflect.TypeFor[*struct{ stamp }](),
	reflect.TypeFor[lowerText](), reflect.TypeFor[*lowerText](), reflect.TypeFor[map[lowerText]string](), reflect.TypeFor[map[string]lowerText](),
	reflect.TypeFor[map[int]string](), reflect.TypeFor[map[uint8]int](), reflect.TypeFor[map[truth]string](), reflect.TypeFor[map[string]int](), reflect.TypeFor[map[string][]byte](), reflect.TypeFor[map[string]map[string]string](),
	reflect.TypeFor[labelSet](), reflect.TypeFor[free](), reflect.TypeFor[map[string]any](), reflect.TypeFor[[]any](), reflect.TypeFor[any](), reflect.TypeFor[*any](), reflect.TypeFor[speaker](), reflect.TypeFor[error](),
	reflect.TypeFor[truth](), reflect.TypeFor[*truth](), reflect.TypeFor[**int](), reflect.TypeFor[*[]string](), reflect.TypeFor[[][]string](), reflect.TypeFor[[]*int32](), reflect.TypeFor[[3]int](), reflect.TypeFor[[2]byte](), reflect.TypeFor[[]byte](), reflect.TypeFor[[]int8](), reflect.TypeFor[[]uint16](),
	reflect.TypeFor[int](), reflect.TypeFor[int16](), reflect.TypeFor[uint32](), reflect.TypeFor[uintptr](), reflect.TypeFor[*int64](), reflect.TypeFor[*uint32](), reflect.TypeFor[*float32](), reflect.TypeFor[*string](), reflect.TypeFor[complex64](), reflect.TypeFor[chan int](), reflect.TypeFor[func()](),
	reflect.TypeFor[recursive](), reflect.TypeFor[struct{}](), reflect.TypeFor[[]struct{}](), reflect.TypeFor[*struct{}](),
	reflect.TypeFor[inlined](), reflect.TypeFor[ambiguous](), reflect.TypeFor[tagged](), reflect.TypeFor[viaPointer](), reflect.TypeFor[viaHidden](), reflect.TypeFor[viaHiddenPointer](), reflect.TypeFor[hiddenNamed](), reflect.TypeFor[both](), reflect.TypeFor[bothAndMore](), reflect.TypeFor[options](),
}

var typeSnippets = []string{
	`{"One":1,"Two":2,"Three":3,"Four":4,"named":{"Two":5},"own":"x","2":"y","x":"z","Rest":"r"}`, `{"Three":"t","second":{"Three":7},"hidden":{"Four":8}}`,
	`{"Left":"l","Right":"r"}`, `{"Second":{"Two":1},"Promoted":{"One":1}}`, `{"twice":{"Left":"l"}}`, `{"one":1,"two":2}`,
	`{"int":"5","bool":"true","Float":"1.5","text":"\"quoted\"","ptr":"7","list":["a"]}`, `{"int":5}`, `{"int":"x"}`, `{"int":""}`, `{"int":null,"bool":null}`, `{"int":"007"}`, `{"int":" 5"}`, `{"int":"5 "}`, `{"bool":"tru"}`, `{"int":"null"}`, `{"int":"\u0035"}`,
	`{"-":"dash","Skip":"s","Odd":"o","<&>":"html","\u003c\u0026\u003e":"html","lower":"l","ümlaut":"ü"}`, `{"ümlaut":"ü"}`, `{"\u00fcmlaut":"ü"}`,
	`{"name":"a","next":{"name":"b","next":null},"all":[{"name":"c"},{"name":"c"}],"by":{"x":{"name":"d"},"y":null}}`, `{"by":{"x":{},"x":{}}}`,
	`{"1":"a","2":"b"}`, `{"1":1,"300":2}`, `{"x":"a"}`, `{"true":"a"}`, `{"a":{"b":"c"},"d":{}}`, `{"a":"YWJj"}`, `{"a":"1Gi","b":"500m"}`,
	`[1,2,3]`, `[1,2,3,4]`, `[1]`, `["YWJj"]`, `[["a"],[],null]`, `"bad"`, `["bad"]`, `[{},{}]`, `[1,null,2]`, `[300]`, `[-1]`,
	`"2024-01-02T03:04:05.678901Z"`, `"2024-01-02T03:04:05.678901+02:00"`, `"80"`, `"http"`, `"10%"`, `"1h2m"`, `"-5s"`, `"1.5Gi"`, `"bad\u0020one"`, `80`, `0.5`, `{"f:a":{".":{}}}`,
}

func TestJSONTypes(t *testing.T) {
	parts := pool.New()
	for _, of := range jsonTypes {
		fields := []reflect.StructField{{Name: "X", Type: of, Tag: `json:"x"`}, {Name: "Y", Type: reflect.TypeFor[string](), Tag: `json:"y"`}}
		d := newJSON(t, reflect.PointerTo(reflect.StructOf(fields)), pool.Options{Pool: parts})
		for _, snippet := range wiretest.Some(append(typeSnippets, jsonSnippets...)) {
			for range 2 {
				wantStockJSON(t, d, fmt.Appendf(nil, `{"x":%s,"y":"z"}`, snippet))
			}
		}
		if of.Kind() == reflect.Struct {
			d := newJSON(t, reflect.PointerTo(of), pool.Options{Pool: parts})
			for _, snippet := range append(typeSnippets, jsonSnippets...) {
				wantStockJSON(t, d, []byte(snippet))
			}
		}
	}
}

// TestJSONManyFields has more fields than the set of those met has room for.
func TestJSONManyFields(t *testing.T) {
	var fields []reflect.StructField
	raw := []byte("{")
	for i := range maxFields + 10 {
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int]()})
		raw = fmt.Appendf(raw, `"F%d":%d,`, i, i)
	}
	d := newJSON(t, reflect.PointerTo(reflect.StructOf(fields)), pool.Options{})
	wantStockJSON(t, d, append(raw, `"F3":5}`...))
	wantStockJSON(t, d, append(raw, `"last":5}`...))
	wantStockJSON(t, d, []byte(`{"F3":1,"F70":2,"F70":3}`))
	wantStockJSON(t, d, []byte(`{"F3":1,"F67":2}`))
}
