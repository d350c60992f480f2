package kube

import (
	"bytes"
	"encoding/binary"

	"k8s.io/apimachinery/pkg/runtime"
)

// The small part of protobuf's encoding that envelopes need: a sequence of fields,
// each a tag and, with rare exceptions, a length and that many bytes.

// magic begins every Kubernetes object in protobuf; a runtime.Unknown follows.
var magic = []byte{'k', '8', 's', 0}

const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wireBegin  = 3
	wireEnd    = 4
	wire32     = 5
)

// protoField is a field of a message in memory.
type protoField struct {
	number int
	// data is the value of a field that has a length, else nil.
	data []byte
	// short says that the message ended before the value did.
	short bool
}

// nextField reads the first field of a message and returns what follows it. It is
// not ok if there is no field. A value that is cut off is returned as far as it
// goes.
func nextField(b []byte) (field protoField, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return field, nil, false
	}
	b = b[n:]
	field.number = int(tag >> 3)
	switch tag & 7 {
	case wireVarint:
		_, n = binary.Uvarint(b)
		if n <= 0 {
			return field, nil, false
		}
	case wire64:
		n = 8
	case wire32:
		n = 4
	case wireBytes:
		size, m := binary.Uvarint(b)
		if m <= 0 {
			return field, nil, false
		}
		b = b[m:]
		field.short = size > uint64(len(b))
		n = int(min(size, uint64(len(b))))
		field.data = b[:n:n]
	default:
		return field, nil, false
	}
	if n > len(b) {
		return field, nil, false
	}
	return field, b[n:], true
}

// fields walks a message to its end, or to the first malformed field. It returns
// whether it reached the end.
func fields(b []byte, see func(protoField)) bool {
	for len(b) > 0 {
		field, rest, ok := nextField(b)
		if !ok {
			return false
		}
		see(field)
		if field.short {
			return false
		}
		b = rest
	}
	return true
}

// envelope is a runtime.Unknown, the fields that matter here. The slices point into
// the input.
type envelope struct {
	typeMeta, raw []byte
}

// openEnvelope reads the runtime.Unknown after the magic bytes. If it is cut off,
// ok is false and e holds as much as there is.
func openEnvelope(b []byte) (e envelope, ok bool) {
	if !bytes.HasPrefix(b, magic) {
		return e, false
	}
	ok = fields(b[len(magic):], func(f protoField) {
		switch f.number {
		case 1:
			e.typeMeta = f.data
		case 2:
			e.raw = f.data
		}
	})
	return e, ok
}

// kind reads the envelope's type.
func (e envelope) kind() (t runtime.TypeMeta) {
	_ = t.Unmarshal(e.typeMeta) // an unreadable kind stays empty
	return t
}

// uvarint reads a varint from the body.
func (f *bodyBuffer) uvarint() (uint64, error) {
	for n := 1; n <= binary.MaxVarintLen64; n++ {
		if err := f.need(n); err != nil {
			return 0, err
		}
		if f.window()[n-1] < 0x80 {
			v, _ := binary.Uvarint(f.window()[:n])
			f.at += n
			return v, nil
		}
	}
	return 0, f.malformed("a number does not end")
}

// skipField consumes the value of a field after its tag was read.
func (f *bodyBuffer) skipField(tag uint64) error {
	switch tag & 7 {
	case wireVarint:
		_, err := f.uvarint()
		return err
	case wire64:
		return f.skip(8)
	case wire32:
		return f.skip(4)
	case wireBytes:
		n, err := f.uvarint()
		if err != nil {
			return err
		}
		if n > 1<<62 {
			return f.malformed("a field of %d bytes", n)
		}
		return f.skip(int64(n))
	default:
		return f.malformed("a field of wire type %d", tag&7)
	}
}
