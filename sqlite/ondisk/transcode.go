package ondisk

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// transcoder writes the JSON of protobuf messages; see [shape].
//
// Why not decode and encode: of 10,000 pods as of a moment that was half of the time, most
// of it for memory (bench/history).
type transcoder struct {
	slots []slot
	// quantities has the JSON of quantities by their text: a cluster has few different ones.
	quantities map[string][]byte
}

// slot holds the value of a field in a message.
type slot struct {
	count int
	// number is the value of a scalar, and value the bytes of any other field. For a list or
	// a map, value is the message from its first element on.
	number uint64
	value  []byte
}

// mostQuantities bounds the memory of a transcoder.
const mostQuantities = 4096

// errUnusual says that generated code would not write a message in this form, or that the
// message has something unknown: it must be decoded.
var errUnusual = errors.New("the message cannot be transcoded")

// message appends the JSON of a message.
func (t *transcoder) message(dst []byte, s *shape, raw []byte) (_ []byte, err error) {
	from := len(t.slots)
	t.slots = slices.Grow(t.slots, len(s.fields))[:from+len(s.fields)]
	clear(t.slots[from:])
	defer func() { t.slots = t.slots[:from] }()
	if err := t.split(t.slots[from:], s, s.table, raw); err != nil {
		return dst, err
	}
	dst = append(dst, '{')
	comma := false
	for i := range s.fields {
		f := &s.fields[i]
		if f.absent && t.slots[from+i].count == 0 {
			continue
		}
		found := t.slots[from+i] // t.slots may move
		before := len(dst)
		if comma {
			dst = append(dst, ',')
		}
		dst = append(dst, f.label...)
		at := len(dst)
		if dst, err = t.field(dst, f, found); err != nil {
			return dst, err
		}
		if f.empty(dst[at:]) {
			dst = dst[:before]
			continue
		}
		comma = true
	}
	return append(dst, '}'), nil
}

// empty reports whether a field is left out because of its value.
func (f *shapeField) empty(value []byte) bool {
	switch {
	case f.omitZero:
		return string(value) == "null"
	case !f.omitEmpty || f.pointer:
		return false
	}
	switch f.of.kind {
	case shapeString, shapeBytes:
		return string(value) == `""`
	case shapeBool:
		return string(value) == "false"
	case shapeInt:
		return string(value) == "0"
	}
	return false
}

// split finds the fields of a message.
func (t *transcoder) split(slots []slot, s *shape, table *shapeTable, raw []byte) error {
	for len(raw) > 0 {
		tag, number, value, rest, ok := cutValue(raw)
		if !ok {
			return errUnusual
		}
		at := table.slot(tag >> 3)
		if at < 0 {
			if inline := table.inline[tag>>3]; inline != nil {
				if tag&7 != 2 {
					return errUnusual
				}
				if err := t.split(slots, s, inline, value); err != nil {
					return err
				}
			}
			raw = rest
			continue
		}
		found, kind := &slots[at], s.fields[at].of.kind
		if kind == shapeList || kind == shapeMap {
			if found.count++; found.count == 1 {
				found.value = raw
			}
			raw = rest
			continue
		}
		if found.count > 0 {
			return errUnusual // parts of a message are put together
		}
		if scalar := kind == shapeBool || kind == shapeInt; scalar != (tag&7 == 0) {
			return errUnusual
		}
		found.count++
		found.number, found.value = number, value
		raw = rest
	}
	return nil
}

// field appends the value of a field.
func (t *transcoder) field(dst []byte, f *shapeField, found slot) (_ []byte, err error) {
	switch {
	case found.count == 0 && f.pointer:
		return append(dst, "null"...), nil
	case found.count == 0:
		return append(dst, f.of.zero...), nil
	case f.of.kind == shapeList:
		return t.list(dst, f, found)
	case f.of.kind == shapeMap:
		return t.entries(dst, f, found)
	case f.of.kind == shapeBytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, found.value)
		return append(dst, '"'), nil
	}
	return t.value(dst, f.of, found.number, found.value)
}

func (t *transcoder) list(dst []byte, f *shapeField, found slot) (_ []byte, err error) {
	dst = append(dst, '[')
	rest, element := found.value, f.of.element
	scalar := element.kind == shapeBool || element.kind == shapeInt
	for i := range found.count {
		tag, number, value, after, ok := cutValue(rest)
		if !ok || tag>>3 != f.number || scalar != (tag&7 == 0) {
			return dst, errUnusual // others between, or packed
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = t.value(dst, element, number, value); err != nil {
			return dst, err
		}
		rest = after
	}
	return append(dst, ']'), nil
}

// entries appends a map. Generated code writes it in the order of keys, as JSON has it.
func (t *transcoder) entries(dst []byte, f *shapeField, found slot) (_ []byte, err error) {
	dst = append(dst, '{')
	rest, before := found.value, []byte(nil)
	for i := range found.count {
		tag, _, entry, after, ok := cutValue(rest)
		if !ok || tag>>3 != f.number || tag&7 != 2 {
			return dst, errUnusual
		}
		var key, value []byte
		number, has := uint64(0), false
		for len(entry) > 0 {
			tag, n, v, left, ok := cutValue(entry)
			switch {
			case !ok:
				return dst, errUnusual
			case tag == 1<<3|2:
				key = v
			case tag>>3 == 2:
				if scalar := f.of.element.kind == shapeBool || f.of.element.kind == shapeInt; has || scalar != (tag&7 == 0) {
					return dst, errUnusual
				}
				number, value, has = n, v, true
			default:
				return dst, errUnusual
			}
			entry = left
		}
		if i > 0 {
			if string(before) >= string(key) {
				return dst, errUnusual
			}
			dst = append(dst, ',')
		}
		before = key
		dst = append(appendText(dst, key), ':')
		if !has {
			dst = append(dst, f.of.element.zero...)
		} else if dst, err = t.value(dst, f.of.element, number, value); err != nil {
			return dst, err
		}
		rest = after
	}
	return append(dst, '}'), nil
}

// value appends one value.
func (t *transcoder) value(dst []byte, s *shape, number uint64, raw []byte) ([]byte, error) {
	switch s.kind {
	case shapeMessage:
		return t.message(dst, s, raw)
	case shapeString:
		return appendText(dst, raw), nil
	case shapeBool:
		return strconv.AppendBool(dst, number != 0), nil
	case shapeInt:
		if s.bits == 32 {
			return strconv.AppendInt(dst, int64(int32(number)), 10), nil
		}
		return strconv.AppendInt(dst, int64(number), 10), nil
	case shapeTime:
		return appendTime(dst, raw)
	case shapeQuantity:
		return t.quantity(dst, s, raw)
	case shapeIntOrString:
		return appendIntOrString(dst, raw)
	}
	return decoded(dst, s, raw)
}

// decoded appends the JSON of a value that has its own.
func decoded(dst []byte, s *shape, raw []byte) ([]byte, error) {
	v := reflect.New(s.t).Interface()
	if err := v.(unmarshaler).Unmarshal(raw); err != nil {
		return dst, err
	}
	shown, err := json.Marshal(v)
	return append(dst, shown...), err
}

func (t *transcoder) quantity(dst []byte, s *shape, raw []byte) ([]byte, error) {
	if known, ok := t.quantities[string(raw)]; ok {
		return append(dst, known...), nil
	}
	from := len(dst)
	dst, err := decoded(dst, s, raw)
	if err == nil {
		if len(t.quantities) >= mostQuantities || t.quantities == nil {
			t.quantities = map[string][]byte{}
		}
		t.quantities[string(raw)] = append([]byte(nil), dst[from:]...)
	}
	return dst, err
}

func appendTime(dst, raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return append(dst, "null"...), nil
	}
	seconds := int64(0)
	for len(raw) > 0 {
		tag, number, _, rest, ok := cutValue(raw)
		if !ok || tag&7 != 0 {
			return dst, errUnusual
		}
		if tag>>3 == 1 {
			seconds = int64(number)
		}
		raw = rest
	}
	at := time.Unix(seconds, 0).UTC()
	if at.IsZero() {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '"')
	dst = at.AppendFormat(dst, time.RFC3339)
	return append(dst, '"'), nil
}

func appendIntOrString(dst, raw []byte) ([]byte, error) {
	var v intstr.IntOrString
	for len(raw) > 0 {
		tag, number, value, rest, ok := cutValue(raw)
		switch {
		case !ok:
			return dst, errUnusual
		case tag == 1<<3:
			v.Type = intstr.Type(number)
		case tag == 2<<3:
			v.IntVal = int32(number)
		case tag == 3<<3|2:
			if v.Type == intstr.String {
				return appendText(dst, value), errIf(len(rest) > 0)
			}
		default:
			return dst, errUnusual
		}
		raw = rest
	}
	if v.Type != intstr.Int {
		return dst, errUnusual
	}
	return strconv.AppendInt(dst, int64(v.IntVal), 10), nil
}

func errIf(unusual bool) error {
	if unusual {
		return errUnusual
	}
	return nil
}

// appendText appends a text as json.Marshal writes it.
func appendText(dst, raw []byte) []byte {
	for _, c := range raw {
		if !plainText[c] {
			quoted, _ := json.Marshal(string(raw)) // texts can be written
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, raw...)
	return append(dst, '"')
}

// plainText are the characters that need no escape.
var plainText = func() (plain [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		plain[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return plain
}()

// cutValue takes the first field off a message: its tag, and its number or its bytes.
func cutValue(raw []byte) (tag, number uint64, value, rest []byte, ok bool) {
	tag, n := binary.Uvarint(raw)
	if n <= 0 {
		return 0, 0, nil, nil, false
	}
	raw = raw[n:]
	if number, n = binary.Uvarint(raw); n <= 0 {
		return 0, 0, nil, nil, false
	}
	raw = raw[n:]
	switch tag & 7 {
	case 0:
		return tag, number, nil, raw, true
	case 2:
		if number > uint64(len(raw)) {
			return 0, 0, nil, nil, false
		}
		return tag, 0, raw[:number], raw[number:], true
	}
	return 0, 0, nil, nil, false
}
