package ondisk

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shape says how the JSON of a type is made from its protobuf message, without the object in
// between. For a message it has the fields in the order of JSON, for any other value its
// kind.
//
// The result is that of json.Marshal of the decoded object, byte for byte. Where a message
// is not as the generated code writes it, transcoding fails, and the caller decodes the
// object instead.
type shape struct {
	kind shapeKind
	// t is the Go type; zero is the JSON of its zero value.
	t    reflect.Type
	zero []byte
	// element is the shape of the elements of a list, or of the values of a map.
	element *shape
	// fields are those of a message in the order of JSON, and table says which of them a
	// field of protobuf is.
	fields []shapeField
	table  *shapeTable
	// bits is the size of an integer.
	bits int
}

type shapeKind uint8

const (
	shapeMessage shapeKind = iota
	shapeString
	shapeBool
	shapeInt
	shapeTime
	shapeQuantity
	shapeIntOrString
	// shapeDecoded is decoded, and encoded as JSON.
	shapeDecoded
	// The following are fields only, and no elements of lists and maps.
	shapeBytes
	shapeList
	shapeMap
)

// shapeField is a field of JSON.
type shapeField struct {
	// label is the name with its quotes and the colon, number that of protobuf.
	label  []byte
	number uint64
	// omitEmpty leaves out empty values, omitZero zero times; pointer is null if it is absent.
	// absent says that a field which is not there is left out.
	omitEmpty, omitZero, pointer, absent bool
	of                                   *shape
}

// shapeTable finds the field of a number. A message that JSON shows inline has a table of
// its own.
type shapeTable struct {
	slots  []int // plus one, by number; 0 is unknown
	inline map[uint64]*shapeTable
}

func (t *shapeTable) slot(number uint64) int {
	if number < uint64(len(t.slots)) {
		return t.slots[number] - 1
	}
	return -1
}

var (
	timeType        = reflect.TypeFor[metav1.Time]()
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	unmarshalerType = reflect.TypeFor[unmarshaler]()
)

// unmarshaler is implemented by generated protobuf types.
type unmarshaler interface{ Unmarshal([]byte) error }

// shapes has the shapes of types, with nil for types that cannot be transcoded.
var shapes sync.Map

// shapeOf returns the shape of a type; nil if the type has something that is not known
// here.
func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s, err := shapeMaker{}.make(t)
	if err != nil {
		s = nil
	}
	shapes.Store(t, s)
	return s
}

// shapeMaker makes the shape of a type, and of all that it has.
type shapeMaker map[reflect.Type]*shape

func (m shapeMaker) make(t reflect.Type) (s *shape, err error) {
	if s, ok := m[t]; ok {
		return s, nil
	}
	s = &shape{t: t}
	m[t] = s // types may be recursive
	if err = m.fill(s); err == nil {
		s.zero, err = json.Marshal(reflect.New(t).Interface())
	}
	return s, err
}

func (m shapeMaker) fill(s *shape) (err error) {
	t := s.t
	p := reflect.PointerTo(t)
	switch {
	case t == timeType:
		s.kind = shapeTime
		return nil
	case t == quantityType:
		s.kind = shapeQuantity
		return nil
	case t == intOrStringType:
		s.kind = shapeIntOrString
		return nil
	case p.Implements(jsonMarshaler) || p.Implements(textMarshaler):
		return s.decoded()
	}
	switch t.Kind() {
	case reflect.String:
		s.kind = shapeString
	case reflect.Bool:
		s.kind = shapeBool
	case reflect.Int32, reflect.Int64:
		s.kind, s.bits = shapeInt, t.Bits()
	case reflect.Slice:
		switch {
		case p.Implements(unmarshalerType):
			return fmt.Errorf("%v is a list in a message of its own", t)
		case t.Elem().Kind() == reflect.Uint8:
			s.kind = shapeBytes
			return nil
		}
		s.kind = shapeList
		s.element, err = m.element(t)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("%v has keys that are not strings", t)
		}
		s.kind = shapeMap
		s.element, err = m.element(t)
	case reflect.Struct:
		if !p.Implements(unmarshalerType) {
			return fmt.Errorf("%v is not a message", t)
		}
		s.kind = shapeMessage
		s.table, err = m.addFields(s, t)
	default:
		err = fmt.Errorf("%v is of a kind that is not known", t)
	}
	return err
}

// element is the shape of the elements of a list or a map.
func (m shapeMaker) element(t reflect.Type) (*shape, error) {
	s, err := m.make(t.Elem())
	if err == nil && s.kind >= shapeBytes {
		err = fmt.Errorf("%v has lists, maps or bytes in it", t)
	}
	return s, err
}

func (s *shape) decoded() error {
	if !reflect.PointerTo(s.t).Implements(unmarshalerType) {
		return fmt.Errorf("%v has its own JSON encoding, and is not a message", s.t)
	}
	if !s.t.Implements(jsonMarshaler) && !s.t.Implements(textMarshaler) {
		return fmt.Errorf("%v has JSON of its own only where it has an address", s.t)
	}
	s.kind = shapeDecoded
	return nil
}

// addFields adds the fields of a struct, and those of structs that JSON shows inline.
func (m shapeMaker) addFields(s *shape, t reflect.Type) (*shapeTable, error) {
	table := &shapeTable{inline: map[uint64]*shapeTable{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		number := uint64(0)
		if tag := strings.Split(f.Tag.Get("protobuf"), ","); len(tag) > 1 {
			number, _ = strconv.ParseUint(tag[1], 10, 32)
		}
		if f.Anonymous && name == "" {
			if f.Type.Kind() != reflect.Struct {
				return nil, fmt.Errorf("%v has a part of type %v", t, f.Type)
			}
			inline, err := m.addFields(s, f.Type)
			if err != nil {
				return nil, err
			}
			if number > 0 {
				table.inline[number] = inline
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		next, err := m.field(f, name, number, options)
		if err != nil {
			return nil, err
		}
		for _, other := range s.fields {
			if string(other.label) == string(next.label) {
				return nil, fmt.Errorf("%v has two fields %q", t, name)
			}
		}
		s.fields = append(s.fields, next)
		if number > 0 {
			for uint64(len(table.slots)) <= number {
				table.slots = append(table.slots, 0)
			}
			table.slots[number] = len(s.fields)
		}
	}
	return table, nil
}

func (m shapeMaker) field(f reflect.StructField, name string, number uint64, options string) (shapeField, error) {
	label, err := json.Marshal(name)
	if err != nil {
		return shapeField{}, err
	}
	next := shapeField{label: append(label, ':'), number: number}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			next.omitEmpty = true
		case "omitzero":
			next.omitZero = true
		case "string":
			return next, fmt.Errorf("field %q is a number within a text", name)
		}
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		next.pointer = true
		t = t.Elem()
	}
	if next.of, err = m.make(t); err != nil {
		return next, err
	}
	if next.pointer && next.of.kind >= shapeBytes {
		return next, fmt.Errorf("field %q is a pointer to a list, a map or bytes", name)
	}
	if next.omitZero && f.Type != timeType {
		return next, fmt.Errorf("field %q of type %v is left out if it is zero", name, t)
	}
	switch next.of.kind {
	case shapeMessage, shapeTime, shapeQuantity, shapeIntOrString, shapeDecoded: // structs are never empty
		next.absent = next.omitEmpty && next.pointer || next.omitZero
	default:
		next.absent = next.omitEmpty
	}
	return next, nil
}
