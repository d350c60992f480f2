package apiserver

import (
	"encoding/binary"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Protobuf envelopes, written by hand around messages that are already encoded.
// All fields in them are length-delimited.

const lengthDelimited = 2

func appendHead(b []byte, number, size int) []byte {
	b = binary.AppendUvarint(b, uint64(number<<3|lengthDelimited))
	return binary.AppendUvarint(b, uint64(size))
}

func appendField(b []byte, number int, value string) []byte {
	return append(appendHead(b, number, len(value)), value...)
}

// envelope puts a protobuf message into what it travels in: four magic bytes,
// then the name of its kind and its size. Of a message that is sent after it only
// the size is given. The two fields at the end of an envelope are optional and
// left out.
func envelope(kind schema.GroupVersionKind, size int, data []byte) []byte {
	b := appendEnvelope(make([]byte, 0, 64+len(data)), kindName(kind), size)
	return append(b, data...)
}

func appendEnvelope(b, name []byte, size int) []byte {
	b = append(b, "k8s\x00"...)
	b = append(appendHead(b, 1, len(name)), name...)
	return appendHead(b, 2, size)
}

func kindName(kind schema.GroupVersionKind) []byte {
	return appendField(appendField(nil, 1, kind.GroupVersion().String()), 2, kind.Kind)
}

// framer writes the events of a watch. In JSON an event is a line; in protobuf it
// is a length, four bytes big endian, then the event, in which is an envelope, in
// which is the object.
type framer struct {
	media media
	name  []byte
}

func newFramer(media media, kind schema.GroupVersionKind) framer {
	return framer{media: media, name: kindName(kind)}
}

func (f framer) append(b []byte, event watch.EventType, object []byte) []byte {
	if f.media != asProtobuf {
		b = append(b, `{"type":"`...)
		b = append(b, event...)
		b = append(b, `","object":`...)
		b = append(b, object...)
		return append(b, "}\n"...)
	}
	inner := 4 + headSize(len(f.name)) + len(f.name) + headSize(len(object)) + len(object)
	size := headSize(len(event)) + len(event) + headSize(headSize(inner)+inner) + headSize(inner) + inner
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = appendField(b, 1, string(event))
	b = appendHead(b, 2, headSize(inner)+inner)
	b = appendHead(b, 1, inner)
	b = appendEnvelope(b, f.name, len(object))
	return append(b, object...)
}

// headSize is the size of a head as appendHead writes it.
func headSize(n int) int { return 1 + uvarintSize(n) }

func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// listHead encodes the metadata of a list.
func listHead(meta metav1.ListMeta) ([]byte, error) {
	data, err := meta.Marshal()
	return append(appendHead(nil, 1, len(data)), data...), err
}
