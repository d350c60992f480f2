package wire

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"unsafe"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// jsonMaxFields bounds a struct's fields, for the set of those that were met.
const jsonMaxFields = 256

// jsonState is what one decoding needs, kept for the next.
//
// Its methods decode the value at a position of data into memory that is still zero,
// and return the position after the value, or [odd]. A site says where in an object
// the value is, as far as it matters for what was learned there.
type jsonState struct {
	data  []byte
	depth int
	jsonParts
	texts jsonTexts
	// follows has, by the id of a field, the field that came after it last time.
	// Servers write fields in one order and leave the same ones out, so that a name
	// is most often compared once and never looked up.
	follows []*fieldPlan
	buf     []byte                      // of the text that was unescaped last
	pairs   []jsonPair                  // of the map that is being read
	members []jsonMember                // of the objects and arrays that are being read
	slots   [deepest + 1]unsafe.Pointer // for what is being read at each depth
}

// value decodes the value at i.
func (s *jsonState) value(p *jsonPlan, dst unsafe.Pointer, i int, site uint) int {
	if i = jsonSpace(s.data, i); i == odd {
		return odd
	}
	if s.data[i] == 'n' {
		return s.null(p, dst, i)
	}
	if p.shared && s.pool != nil {
		return s.part(p, dst, i, site)
	}
	return s.fresh(p, dst, i, site)
}

// null leaves the zero value where it is, unless the type has its own view of null.
func (s *jsonState) null(p *jsonPlan, dst unsafe.Pointer, i int) int {
	end := jsonWord(s.data, i, "null")
	if end == odd || p.kind == oddKind {
		return odd
	}
	switch p.kind {
	case stockKind, unmarshalerKind, intOrStringKind, durationKind:
		return s.foreign(p, dst, i, end)
	}
	return end
}

// fresh decodes the value at i, which is not null, without looking for it elsewhere.
func (s *jsonState) fresh(p *jsonPlan, dst unsafe.Pointer, i int, site uint) int {
	switch p.kind {
	case stringKind:
		b, end := s.text(i)
		if end != odd {
			*(*string)(dst) = s.texts.string(b)
		}
		return end
	case boolKind:
		if end := jsonWord(s.data, i, "true"); end != odd {
			*(*bool)(dst) = true
			return end
		}
		return jsonWord(s.data, i, "false")
	case intKind, uintKind, floatKind:
		return s.number(p, dst, i)
	case structKind:
		return s.structure(p, dst, i)
	case sliceKind:
		return s.slice(p, dst, i, site)
	case pointerKind:
		var target unsafe.Pointer
		if p.elem.isNumber() {
			target = s.texts.number()
		} else {
			target = reflect.New(p.elem.typ).UnsafePointer()
		}
		*(*unsafe.Pointer)(dst) = target
		return s.value(p.elem, target, i, site)
	case textMapKind:
		return s.textMap(dst, i)
	case mapKind:
		return s.anyMap(p, dst, i, site)
	case freeMapKind:
		return s.freeMap(p.scope, dst, i)
	case freeSliceKind:
		return s.freeSlice(nil, dst, i, site)
	case anyKind:
		x, end := s.any(i, p.scope, site)
		*(*any)(dst) = x
		return end
	case bytesKind:
		return s.bytes(p, dst, i)
	case quotedKind:
		if s.data[i] != '"' {
			return odd
		}
		if i = s.fresh(p.elem, dst, i+1, site); i == odd {
			return odd
		}
		return jsonWord(s.data, i, `"`)
	case dropKind:
		return jsonSkip(s.data, i, s.depth)
	case oddKind, interfaceKind:
		return odd
	case textUnmarshalerKind:
		return s.textUnmarshaler(p, dst, i)
	default:
		return s.known(p, dst, i)
	}
}

// text returns the text of the string at i, valid until the next call.
func (s *jsonState) text(i int) (b []byte, end int) {
	if s.data[i] != '"' {
		return nil, odd
	}
	end, plain := jsonQuote(s.data, i+1)
	if end == odd {
		return nil, odd
	}
	b = s.data[i+1 : end]
	if !plain {
		var ok bool
		if s.buf, ok = jsonUnescape(s.buf[:0], b); !ok {
			return nil, odd
		}
		b = s.buf
	}
	return b, end + 1
}

// number decodes a number into a type of numbers that can hold it.
func (s *jsonState) number(p *jsonPlan, dst unsafe.Pointer, i int) int {
	end, integer := jsonNumber(s.data, i)
	if end == odd {
		return odd
	}
	text := unsafe.String(&s.data[i], end-i)
	bits := p.size * 8
	if p.kind == floatKind {
		f, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return odd
		}
		if bits == 32 {
			*(*float32)(dst) = float32(f)
		} else {
			*(*float64)(dst) = f
		}
		return end
	}
	if !integer {
		return odd
	}
	n, small := jsonSmallInt(text)
	if !small || p.kind == uintKind && text[0] == '-' {
		return s.foreign(p, dst, i, end)
	}
	switch bits {
	case 8:
		if p.kind == intKind && n != int64(int8(n)) || p.kind == uintKind && n != int64(uint8(n)) {
			return odd
		}
		*(*uint8)(dst) = uint8(n)
	case 16:
		if p.kind == intKind && n != int64(int16(n)) || p.kind == uintKind && n != int64(uint16(n)) {
			return odd
		}
		*(*uint16)(dst) = uint16(n)
	case 32:
		if p.kind == intKind && n != int64(int32(n)) || p.kind == uintKind && n != int64(uint32(n)) {
			return odd
		}
		*(*uint32)(dst) = uint32(n)
	default:
		*(*int64)(dst) = n
	}
	return end
}

// jsonSmallInt reads an integer that surely fits.
func jsonSmallInt(text string) (n int64, ok bool) {
	digits := text
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) > 18 {
		return 0, false
	}
	for _, c := range []byte(digits) {
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// bytes decodes a string of base 64.
func (s *jsonState) bytes(p *jsonPlan, dst unsafe.Pointer, i int) int {
	if s.data[i] != '"' {
		return s.foreign(p, dst, i, jsonSkip(s.data, i, s.depth))
	}
	text, end := s.text(i)
	if end == odd {
		return odd
	}
	s.buf = append(s.buf[:0], text...)
	n, err := base64.StdEncoding.Decode(s.buf, s.buf)
	if err != nil {
		return odd
	}
	b := make([]byte, n)
	copy(b, s.buf)
	*(*[]byte)(dst) = b
	return end
}

// foreign hands the value between i and end to the type's own decoder, or to the
// stock one.
func (s *jsonState) foreign(p *jsonPlan, dst unsafe.Pointer, i, end int) int {
	if end == odd {
		return odd
	}
	target := reflect.NewAt(p.typ, dst).Interface()
	if own, ok := target.(json.Unmarshaler); ok {
		if own.UnmarshalJSON(s.data[i:end]) != nil {
			return odd
		}
		return end
	}
	if utiljson.Unmarshal(s.data[i:end], target) != nil {
		return odd
	}
	return end
}

func (s *jsonState) textUnmarshaler(p *jsonPlan, dst unsafe.Pointer, i int) int {
	text, end := s.text(i)
	if end == odd {
		return odd
	}
	own := reflect.NewAt(p.typ, dst).Interface().(encoding.TextUnmarshaler)
	if own.UnmarshalText(text) != nil {
		return odd
	}
	return end
}
