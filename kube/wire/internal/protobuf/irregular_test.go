package protobuf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// lenField is a length-delimited field.
func lenField(number int, content ...[]byte) []byte {
	b := binary.AppendUvarint(nil, uint64(number)<<3|wireBytes)
	body := bytes.Join(content, nil)
	return append(binary.AppendUvarint(b, uint64(len(body))), body...)
}

func varintField(number int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), v)
}

func text(number int, s string) []byte { return lenField(number, []byte(s)) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Bytes that writers do not send, and that the stock decoder accepts or refuses.
func TestProtobufIrregular(t *testing.T) {
	meta := func(b ...[]byte) []byte { return lenField(1, b...) }
	spec := func(b ...[]byte) []byte { return lenField(2, b...) }
	label := func(k, v string) []byte { return lenField(11, text(1, k), text(2, v)) }
	volume := func(name string) []byte { return lenField(1, text(1, name)) }
	for name, test := range map[string]struct {
		raw  []byte
		fast bool
	}{
		"nothing":                       {nil, true},
		"unknown fields":                {join(varintField(900, 7), text(901, "x"), meta(text(1, "a")), []byte{0xbd, 0x3e, 1, 2, 3, 4}), true},
		"empty message":                 {join(meta(), spec()), true},
		"message twice":                 {join(meta(text(1, "a"), text(3, "ns")), meta(text(1, "b"))), false},
		"text twice":                    {meta(text(1, "a"), text(1, "b")), false},
		"text twice, then empty":        {meta(text(1, "a"), text(1, "")), false},
		"pointer twice":                 {join(spec(varintField(4, 30), varintField(4, 31))), false},
		"pointer to message twice":      {spec(lenField(14, varintField(3, 1)), lenField(14, varintField(2, 2))), false},
		"list in two runs":              {spec(volume("a"), text(3, "Always"), volume("b")), false},
		"list again in a merged struct": {join(spec(volume("a")), spec(volume("b"))), false},
		"map in two runs":               {meta(label("a", "1"), text(1, "n"), label("b", "2")), false},
		"map key twice":                 {meta(label("a", "1"), label("a", "2")), true},
		"map entry without value":       {meta(lenField(11, text(1, "a")), label("b", "")), true},
		"map entry without key":         {meta(lenField(11, text(2, "a"))), false},
		"map entry without anything":    {meta(lenField(11)), false},
		"map entry, value first":        {meta(lenField(11, text(2, "v"), text(1, "k"))), false},
		"map entry with more":           {meta(lenField(11, text(1, "k"), text(2, "v"), text(3, "w"))), false},
		"map value beyond its entry":    {meta(lenField(11, text(1, "k"), []byte{0x12, 9, 'v'}), text(1, "abcdefgh")), false},
		"long tag":                      {meta([]byte{0x8a, 0x00, 1, 'a'}), false},
		"long length":                   {meta([]byte{0x0a, 0x81, 0x00, 'a'}), true},
		"long number":                   {meta([]byte{0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), true},
		"too long number":               {meta([]byte{0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), false},
		"bool that is 2":                {spec(varintField(11, 2)), true},
		"number for text":               {meta(varintField(1, 1)), false},
		"text for number":               {meta(text(7, "1")), false},
		"group":                         {meta([]byte{0x0b, 0x0c}), false},
		"end of no group":               {meta([]byte{0x0c}), false},
		"unknown group":                 {meta([]byte{0xbb, 0x1f, 0x0a, 0x01, 'x', 0xbc, 0x1f}, text(1, "a")), false},
		"field 0":                       {meta([]byte{0x02, 0x00}), false},
		"wire type 6":                   {meta([]byte{0x0e, 0x00}), false},
		"length beyond the end":         {[]byte{0x0a, 0x05, 0x0a}, false},
		"huge length":                   {meta([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), false},
		"invalid UTF-8":                 {meta(text(1, "\xff\xfe")), true},
		"time of no bytes":              {meta(lenField(8)), true},
		"time, nanoseconds first":       {meta(lenField(8, varintField(2, 5), varintField(1, 1700000000))), true},
		"time with more":                {meta(lenField(8, varintField(1, 1), varintField(3, 1))), true},
		"time, twice":                   {meta(lenField(8, varintField(1, 1)), lenField(8)), false},
		"time that is none":             {meta(text(8, "x")), false},
		"negative time":                 {meta(lenField(8, varintField(1, 1<<64-5))), true},
		"quantity that is none":         {spec(lenField(32, text(1, "cpu"), lenField(2, text(1, "x")))), false},
		"quantity of nothing":           {spec(lenField(32, text(1, "cpu"), lenField(2))), true},
		"quantity with a huge length":   {spec(lenField(32, text(1, "cpu"), lenField(2, []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}))), false},
		"quantity with a nested group":  {spec(lenField(32, text(1, "cpu"), lenField(2, bytes.Repeat([]byte{0x13}, 20)))), false},
		"empty strings in a list":       {meta(text(14, ""), text(14, "a"), text(14, "")), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
			for range 4 {
				wantStockProtobuf(t, d, test.raw)
			}
			if fast := protobufFast(d, test.raw); fast != test.fast {
				t.Errorf("fast path takes it: %v, want %v", fast, test.fast)
			}
		})
	}
}

// Every prefix of an object fails or succeeds as with the stock decoder.
func TestProtobufTruncated(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.Secret]()} {
		d := newProtobuf(t, of, pool.Options{Pool: pool.New()})
		original := reflect.New(of)
		newFiller(3).Fill(original.Interface())
		raw := wiretest.Marshal(t, original.Interface())
		for n := range min(len(raw), 4000) {
			if wiretest.RaceEnabled && n%16 != 0 {
				continue
			}
			wantStockProtobuf(t, d, raw[:n])
		}
	}
}

func TestProtobufErrorSaysWhere(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
	_, err := d.Decode(join(lenField(1, text(1, "a"), text(3, "b")), []byte{0x12, 0x7f, 0x00}))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "v1.Pod in protobuf, at byte 8 of 11") {
		t.Errorf("error %v", err)
	}
}

// nestedSchema is a schema of a property of a property ... n levels deep, from the
// inside out, with the wire form of each level.
func nestedSchema(n int, wrap func([]byte) []byte) []byte {
	schema := text(1, "id")
	for range n {
		schema = wrap(schema)
	}
	// spec.versions[0].schema.openAPIV3Schema
	return lenField(2, lenField(7, lenField(4, lenField(1, schema))))
}

func TestProtobufDepth(t *testing.T) {
	of := reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]()
	not := func(b []byte) []byte { return lenField(28, b) }
	property := func(b []byte) []byte { return lenField(29, text(1, "p"), lenField(2, b)) }
	repeated := func(b []byte) []byte { return join(lenField(28, b), lenField(28)) } // a field twice: for the stock decoder
	for name, wrap := range map[string]func([]byte) []byte{"not": not, "properties": property, "irregular": repeated} {
		t.Run(name, func(t *testing.T) {
			d := newProtobuf(t, of, pool.Options{Pool: pool.New()})
			for range 10 { // so that its parts are in the pool
				wantStockProtobuf(t, d, nestedSchema(900, wrap))
			}
			for range 3 {
				_, err := d.Decode(nestedSchema(1100, wrap))
				if !errors.Is(err, errTooDeep) {
					t.Errorf("1,100 levels: %v", err)
				}
			}
		})
	}
	t.Run("a million groups", func(t *testing.T) {
		d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{})
		groups := bytes.Repeat([]byte{0x13}, 1_000_000)
		quantity := lenField(2, lenField(32, text(1, "cpu"), lenField(2, groups)))
		for _, raw := range [][]byte{quantity, groups, lenField(1, groups)} {
			if _, err := d.Decode(raw); !errors.Is(err, errTooDeep) {
				t.Errorf("error %v", err)
			}
		}
	})
}

func FuzzProtobuf(f *testing.F) {
	types := []reflect.Type{
		reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.Secret](), reflect.TypeFor[corev1.Event](),
		reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), reflect.TypeFor[metav1.PartialObjectMetadata](),
	}
	filler := newFiller(4)
	for i, of := range types {
		for range 3 {
			original := reflect.New(of)
			filler.Fill(original.Interface())
			if raw := wiretest.Marshal(f, original.Interface()); len(raw) < 4096 {
				f.Add(uint8(i), raw)
			}
		}
		f.Add(uint8(i), []byte{})
	}
	f.Add(uint8(3), nestedSchema(20, func(b []byte) []byte { return lenField(28, b) }))
	var decoders []*Decoder
	parts := pool.New()
	for _, of := range types {
		decoders = append(decoders, newProtobuf(f, of, pool.Options{Pool: parts}))
	}
	f.Fuzz(func(t *testing.T, which uint8, raw []byte) {
		d := decoders[int(which)%len(decoders)]
		for range 2 {
			wantStockProtobuf(t, d, raw)
		}
	})
}
