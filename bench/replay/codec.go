package replay

import (
	"bufio"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// page is a list, or a part of one.
type page struct {
	version, next string
	remaining     int
	items         [][]byte
}

// codec puts encoded objects together to what a server sends. A [bufio.Writer]
// remembers its first error, so that one look at the end is enough.
type codec interface {
	list(w *bufio.Writer, p page)
	event(w *bufio.Writer, kind string, object []byte)
}

// magic is what precedes every protobuf body, but not a frame of a watch.
const magic = "k8s\x00"

// protobufCodec writes runtime.Unknown around lists and objects, and for watches
// WatchEvents with their length before them. It writes them by hand: a list of
// 100,000 pods would not be nice to have as one message in memory.
type protobufCodec struct{ apiVersion, kind string }

// field is a length-delimited field's tag and length.
func field(b []byte, number protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(length))
}

func fieldSize(number protowire.Number, length int) int {
	return protowire.SizeTag(number) + protowire.SizeBytes(length)
}

// envelope returns what stands before and after a message in runtime.Unknown.
func (c protobufCodec) envelope(kind string, length int) (before, after []byte) {
	meta := field(nil, 1, len(c.apiVersion))
	meta = append(meta, c.apiVersion...)
	meta = field(meta, 2, len(kind))
	meta = append(meta, kind...)

	before = append([]byte(magic), field(nil, 1, len(meta))...)
	before = append(before, meta...)
	before = field(before, 2, length)
	return before, field(field(nil, 3, 0), 4, 0)
}

func (c protobufCodec) list(w *bufio.Writer, p page) {
	meta := field(nil, 1, 0) // selfLink, empty but written
	meta = append(field(meta, 2, len(p.version)), p.version...)
	meta = append(field(meta, 3, len(p.next)), p.next...)
	if p.remaining > 0 {
		meta = protowire.AppendVarint(protowire.AppendTag(meta, 4, protowire.VarintType), uint64(p.remaining))
	}
	length := fieldSize(1, len(meta))
	for _, item := range p.items {
		length += fieldSize(2, len(item))
	}
	before, after := c.envelope(c.kind+"List", length)
	w.Write(before)
	w.Write(field(nil, 1, len(meta)))
	w.Write(meta)
	var head [16]byte
	for _, item := range p.items {
		w.Write(field(head[:0], 2, len(item)))
		w.Write(item)
	}
	w.Write(after)
}

func (c protobufCodec) event(w *bufio.Writer, kind string, object []byte) {
	before, after := c.envelope(c.kind, len(object))
	raw := len(before) + len(object) + len(after)
	head := append(field(nil, 1, len(kind)), kind...)
	head = field(head, 2, fieldSize(1, raw)) // a RawExtension …
	head = field(head, 1, raw)               // … and what is in it
	w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(head)+raw)))
	w.Write(head)
	w.Write(before)
	w.Write(object)
	w.Write(after)
}

// jsonCodec writes objects that are encoded without their kind and version,
// since items of built-in lists have none.
type jsonCodec struct {
	apiVersion, kind string
	custom           bool
}

// object writes an object with its kind, in the order of keys that a server has
// for this resource.
func (c jsonCodec) object(w *bufio.Writer, object []byte) {
	if c.custom {
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,`, c.apiVersion, c.kind)
	} else {
		fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,`, c.kind, c.apiVersion)
	}
	w.Write(object[len("{"):])
}

func (c jsonCodec) list(w *bufio.Writer, p page) {
	meta := fmt.Sprintf(`"resourceVersion":%q`, p.version)
	if p.next != "" {
		meta = fmt.Sprintf(`"continue":%q,"remainingItemCount":%d,%s`, p.next, p.remaining, meta)
	}
	if c.custom {
		fmt.Fprintf(w, `{"apiVersion":%q,"items":[`, c.apiVersion)
	} else {
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{%s},"items":[`, c.kind, c.apiVersion, meta)
	}
	for i, item := range p.items {
		if i > 0 {
			w.WriteByte(',')
		}
		if c.custom {
			c.object(w, item)
		} else {
			w.Write(item)
		}
	}
	w.WriteByte(']')
	if c.custom {
		fmt.Fprintf(w, `,"kind":"%sList","metadata":{%s}`, c.kind, meta)
	}
	w.WriteString("}\n")
}

func (c jsonCodec) event(w *bufio.Writer, kind string, object []byte) {
	fmt.Fprintf(w, `{"type":%q,"object":`, kind)
	c.object(w, object)
	w.WriteString("}\n")
}
