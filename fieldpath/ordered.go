package fieldpath

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
)

// An ordered code is a string that sorts like its values, one after the other, so
// that a tree of strings can hold values of any kind and rows of several.
//
// Each value is a byte for its kind and then its content. A number is a float64
// with its bits turned so that the bytes sort, followed by what the float64 lost of
// a whole number. A string has each 0 byte as 0 255 and ends with 0 0, which sorts
// before every longer string.
const (
	codeMissing   = 0x10
	codeBool      = 0x20
	codeNumber    = 0x30
	codeTime      = 0x40
	codeString    = 0x50
	codeComposite = 0x60
)

// AppendOrdered appends the value's ordered code to dst: codes compare by their
// bytes as the values do by Compare, and so do sequences of codes.
func (v Value) AppendOrdered(dst []byte) []byte {
	switch v.kind {
	case Bool:
		return append(dst, codeBool, byte(v.bits))
	case Int, Float:
		return appendNumber(append(dst, codeNumber), v)
	case Time:
		dst = binary.BigEndian.AppendUint64(append(dst, codeTime), uint64(v.bits)^1<<63)
		return binary.BigEndian.AppendUint32(dst, v.nanos)
	case String:
		return append(appendText(append(dst, codeString), v.text), 0, 0)
	case Composite:
		return append(appendText(append(dst, codeComposite), v.text), 0, 0)
	}
	return append(dst, codeMissing)
}

// AppendOrderedPrefix appends the common beginning of the ordered codes of all
// strings that begin with prefix.
func AppendOrderedPrefix(dst []byte, prefix string) []byte {
	return appendText(append(dst, codeString), prefix)
}

func appendText(dst []byte, s string) []byte {
	for {
		zero := strings.IndexByte(s, 0)
		if zero < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:zero]...), 0, 255)
		s = s[zero+1:]
	}
}

// appendNumber writes the float64 at or below the number, and then the distance to
// it, which is zero except for large whole numbers.
func appendNumber(dst []byte, v Value) []byte {
	f, rest := v.float(), uint16(0)
	if v.kind == Int {
		f = float64(v.bits)
		if f >= 1<<63 || int64(f) > v.bits {
			f = math.Nextafter(f, math.Inf(-1))
		}
		rest = uint16(v.bits - int64(f))
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(dst, bits), rest)
}

var errCode = errors.New("not an ordered code of a value")

// ReadOrdered reads the first value of a row of ordered codes, and returns the
// rest.
func ReadOrdered(code string) (v Value, rest string, err error) {
	if code == "" {
		return Value{}, "", errCode
	}
	kind, code := code[0], code[1:]
	switch {
	case kind == codeMissing:
		return Value{}, code, nil
	case kind == codeBool && len(code) >= 1 && code[0] <= 1:
		return BoolValue(code[0] == 1), code[1:], nil
	case kind == codeNumber && len(code) >= 10:
		v, err := readNumber([]byte(code[:10]))
		return v, code[10:], err
	case kind == codeTime && len(code) >= 12:
		b := []byte(code[:12])
		v := Value{kind: Time, bits: int64(binary.BigEndian.Uint64(b) ^ 1<<63), nanos: binary.BigEndian.Uint32(b[8:])}
		if v.nanos >= 1e9 {
			return Value{}, "", errCode
		}
		return v, code[12:], nil
	case kind == codeString || kind == codeComposite:
		text, rest, ok := readText(code)
		if !ok {
			return Value{}, "", errCode
		}
		v := Value{kind: String, text: text}
		if kind == codeComposite {
			v.kind = Composite
		}
		return v, rest, nil
	}
	return Value{}, "", errCode
}

func readNumber(b []byte) (Value, error) {
	bits, rest := binary.BigEndian.Uint64(b), binary.BigEndian.Uint16(b[8:])
	if bits>>63 == 1 {
		bits &^= 1 << 63
	} else {
		bits = ^bits
	}
	v := FloatValue(math.Float64frombits(bits))
	if v.kind == Int {
		v.bits += int64(rest)
	} else if rest != 0 || v.kind == Missing {
		return Value{}, errCode
	}
	return v, nil
}

func readText(code string) (text, rest string, ok bool) {
	end := strings.IndexByte(code, 0)
	if end < 0 || end+1 == len(code) {
		return "", "", false
	}
	if code[end+1] == 0 {
		return code[:end], code[end+2:], true
	}
	var b strings.Builder
	for {
		end := strings.IndexByte(code, 0)
		if end < 0 || end+1 == len(code) {
			return "", "", false
		}
		b.WriteString(code[:end])
		switch code[end+1] {
		case 0:
			return b.String(), code[end+2:], true
		case 255:
			b.WriteByte(0)
		default:
			return "", "", false
		}
		code = code[end+2:]
	}
}
