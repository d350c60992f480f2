package jsonout

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Encoder appends objects as [Append] does, and remembers the JSON of their parts by the
// addresses of these: objects that came from one pool have most of their parts in common.
//
//   - Nothing that it was given may change before Close.
//   - It is for one goroutine at a time.
//
// Why not for good: a caller of Append may change an object between two calls, and what is
// remembered keeps parts in memory that no object has any more.
type Encoder struct{ w writer }

// NewEncoder returns an encoder that knows nothing yet.
func NewEncoder() *Encoder { return encodersWithParts.Get().(*Encoder) }

var encodersWithParts = sync.Pool{New: func() any { return &Encoder{writer{parts: &parts{}}} }}

// Append appends the JSON of an object to buf.
func (e *Encoder) Append(buf []byte, object any) ([]byte, error) { return e.w.append(buf, object) }

// Close forgets everything. The encoder must not be used afterwards.
func (e *Encoder) Close() {
	e.w.parts.forget()
	encodersWithParts.Put(e)
}

// parts is the JSON of parts of objects: of pointers, lists and maps.
//
// A part is kept when it is met for the second time, since most are met once. It is found by
// its address, and referred to for as long as it is kept, so that nothing else comes to lie
// there. The table has one place for each hash, and the last part stays.
type parts struct {
	kept [1 << placeBits]part
	// met has the hashes of the parts that were met. A part that is confused with another is
	// kept one time too early.
	met [1 << placeBits]uint32
	// text is the JSON of all parts, one after the other.
	text []byte
}

const (
	placeBits = 12
	// shortest is how long JSON must be to be kept, mostText how long all of it may become.
	shortest = 16
	mostText = 2 << 20
)

// part is what is at an address. Its kind belongs to it, because a struct begins where its
// first field does, and the size of a list, which may begin where another one does.
type part struct {
	at       unsafe.Pointer
	size     int
	kind     kind
	from, to uint32
}

// kind tells the types of parts from each other.
type kind uint32

var kinds atomic.Uint32

func newKind() kind { return kind(kinds.Add(1)) }

// place is where a part is in the table, and its hash.
func place(at unsafe.Pointer, size int, k kind) (int, uint32) {
	h := (uint64(uintptr(at)) ^ uint64(size)<<48 ^ uint64(k)<<52) * 0x9e3779b97f4a7c15
	return int(h >> (64 - placeBits)), uint32(h>>16) | 1
}

// find appends what is known of a part.
func (p *parts) find(buf []byte, at unsafe.Pointer, size int, k kind) ([]byte, bool) {
	i, _ := place(at, size, k)
	if e := &p.kept[i]; e.at == at && e.size == size && e.kind == k {
		return append(buf, p.text[e.from:e.to]...), true
	}
	return buf, false
}

// meet records that a part has this JSON.
func (p *parts) meet(json []byte, at unsafe.Pointer, size int, k kind) {
	if len(json) < shortest || len(json) > mostText {
		return
	}
	i, hash := place(at, size, k)
	if p.met[i] != hash {
		p.met[i] = hash
		return
	}
	if len(p.text)+len(json) > mostText {
		p.forget()
	}
	from := len(p.text)
	p.text = append(p.text, json...)
	p.kept[i] = part{at, size, k, uint32(from), uint32(len(p.text))}
}

// forget drops all parts.
func (p *parts) forget() {
	if len(p.text) > 0 {
		clear(p.kept[:])
		p.text = p.text[:0]
	}
}

// known appends what is known of a part.
func (w *writer) known(buf []byte, at unsafe.Pointer, size int, k kind) ([]byte, bool) {
	if w.parts == nil {
		return buf, false
	}
	return w.parts.find(buf, at, size, k)
}

// learn records the JSON of a part, unless there was an error.
func (w *writer) learn(json []byte, at unsafe.Pointer, size int, k kind) {
	if w.parts != nil && w.err == nil {
		w.parts.meet(json, at, size, k)
	}
}
