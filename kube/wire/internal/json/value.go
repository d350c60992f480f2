package json

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"unsafe"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// maxFields bounds a struct's fields; the set of fields that were read has this
// size.
const maxFields = 256

// reader is the state of one decoding, kept for the next.
//
// Its methods decode the value at a position of data into memory that is still
// zero, and return the position after the value, or [irregular]. A site says
// where in an object the value is, as far as the statistics tell places apart.
type reader struct {
	data  []byte
	depth int
	partFinder
	texts textMaker
	// follows has, by the id of a field, the field that came after it last time.
	// Servers write fields in one order and leave the same ones out, so that a name
	// is most often compared once and never looked up.
	follows []*fieldPlan
	buf     []byte                       // the text that was unescaped last
	pairs   []pair                       // the map that is being read
	members []member                     // the objects and arrays that are being read
	slots   [maxDepth + 1]unsafe.Pointer // the values that are being read, by depth
}

// value decodes the value at i.
func (s *reader) value(p *plan, dst unsafe.Pointer, i int, site uint) int {
	if i = skipSpace(s.data, i); i == irregular {
		return irregular
	}
	if s.data[i] == 'n' {
		return s.null(p, dst, i)
	}
	if p.shared && s.pool != nil {
		return s.part(p, dst, i, site)
	}
	return s.decodeNew(p, dst, i, site)
}

// null leaves the zero value, unless the type has its own rule for null.
func (s *reader) null(p *plan, dst unsafe.Pointer, i int) int {
	end := matchWord(s.data, i, "null")
	if end == irregular || p.kind == irregularKind {
		return irregular
	}
	switch p.kind {
	case stockKind, unmarshalerKind, intOrStringKind, durationKind:
		return s.ownDecoder(p, dst, i, end)
	}
	return end
}

// decodeNew decodes the value at i, which is not null, without looking for it elsewhere.
func (s *reader) decodeNew(p *plan, dst unsafe.Pointer, i int, site uint) int {
	switch p.kind {
	case stringKind:
		b, end := s.text(i)
		if end != irregular {
			*(*string)(dst) = s.texts.string(b)
		}
		return end
	case boolKind:
		if end := matchWord(s.data, i, "true"); end != irregular {
			*(*bool)(dst) = true
			return end
		}
		return matchWord(s.data, i, "false")
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
	case untypedMapKind:
		return s.untypedMap(p.scope, dst, i)
	case untypedListKind:
		return s.untypedList(nil, dst, i, site)
	case anyKind:
		x, end := s.any(i, p.scope, site)
		*(*any)(dst) = x
		return end
	case bytesKind:
		return s.bytes(p, dst, i)
	case quotedKind:
		if s.data[i] != '"' {
			return irregular
		}
		if i = s.decodeNew(p.elem, dst, i+1, site); i == irregular {
			return irregular
		}
		return matchWord(s.data, i, `"`)
	case dropKind:
		return skipValue(s.data, i, s.depth)
	case irregularKind, interfaceKind:
		return irregular
	case textUnmarshalerKind:
		return s.textUnmarshaler(p, dst, i)
	default:
		return s.known(p, dst, i)
	}
}

// text returns the text of the string at i, valid until the next call.
func (s *reader) text(i int) (b []byte, end int) {
	if s.data[i] != '"' {
		return nil, irregular
	}
	end, plain := findQuote(s.data, i+1)
	if end == irregular {
		return nil, irregular
	}
	b = s.data[i+1 : end]
	if !plain {
		var ok bool
		if s.buf, ok = unescape(s.buf[:0], b); !ok {
			return nil, irregular
		}
		b = s.buf
	}
	return b, end + 1
}

// number decodes a number into a numeric type that can hold it.
func (s *reader) number(p *plan, dst unsafe.Pointer, i int) int {
	end, integer := scanNumber(s.data, i)
	if end == irregular {
		return irregular
	}
	text := unsafe.String(&s.data[i], end-i)
	bits := p.size * 8
	if p.kind == floatKind {
		f, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return irregular
		}
		if bits == 32 {
			*(*float32)(dst) = float32(f)
		} else {
			*(*float64)(dst) = f
		}
		return end
	}
	if !integer {
		return irregular
	}
	n, small := smallInt(text)
	if !small || p.kind == uintKind && text[0] == '-' {
		return s.ownDecoder(p, dst, i, end)
	}
	switch bits {
	case 8:
		if p.kind == intKind && n != int64(int8(n)) || p.kind == uintKind && n != int64(uint8(n)) {
			return irregular
		}
		*(*uint8)(dst) = uint8(n)
	case 16:
		if p.kind == intKind && n != int64(int16(n)) || p.kind == uintKind && n != int64(uint16(n)) {
			return irregular
		}
		*(*uint16)(dst) = uint16(n)
	case 32:
		if p.kind == intKind && n != int64(int32(n)) || p.kind == uintKind && n != int64(uint32(n)) {
			return irregular
		}
		*(*uint32)(dst) = uint32(n)
	default:
		*(*int64)(dst) = n
	}
	return end
}

// smallInt reads an integer that surely fits.
func smallInt(text string) (n int64, ok bool) {
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

// bytes decodes a base64 string.
func (s *reader) bytes(p *plan, dst unsafe.Pointer, i int) int {
	if s.data[i] != '"' {
		return s.ownDecoder(p, dst, i, skipValue(s.data, i, s.depth))
	}
	text, end := s.text(i)
	if end == irregular {
		return irregular
	}
	s.buf = append(s.buf[:0], text...)
	n, err := base64.StdEncoding.Decode(s.buf, s.buf)
	if err != nil {
		return irregular
	}
	b := make([]byte, n)
	copy(b, s.buf)
	*(*[]byte)(dst) = b
	return end
}

// ownDecoder hands the value between i and end to the type's own decoder, or to the
// stock one.
func (s *reader) ownDecoder(p *plan, dst unsafe.Pointer, i, end int) int {
	if end == irregular {
		return irregular
	}
	target := reflect.NewAt(p.typ, dst).Interface()
	if own, ok := target.(json.Unmarshaler); ok {
		if own.UnmarshalJSON(s.data[i:end]) != nil {
			return irregular
		}
		return end
	}
	if utiljson.Unmarshal(s.data[i:end], target) != nil {
		return irregular
	}
	return end
}

func (s *reader) textUnmarshaler(p *plan, dst unsafe.Pointer, i int) int {
	text, end := s.text(i)
	if end == irregular {
		return irregular
	}
	own := reflect.NewAt(p.typ, dst).Interface().(encoding.TextUnmarshaler)
	if own.UnmarshalText(text) != nil {
		return irregular
	}
	return end
}
