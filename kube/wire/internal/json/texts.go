package json

import (
	"hash/maphash"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/recent"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// textMaker makes the strings of objects.
//
// A text that was seen before is used again. A text that is new is cut from a chunk that
// it shares with its neighbours, so that what never repeats (names, uids,
// addresses) costs its bytes, and no heap object each.
//
// Why not one allocation for each object, as protobuf has it: the text of JSON is
// not ready to be copied as one, and in an unstructured object a string must be
// whole before it can go into its map.
type textMaker struct {
	seed    maphash.Seed
	known   recent.Texts
	boxed   recent.Table[any] // known texts in interfaces, by their address
	current int
	arenas  [2]arena
}

// arena is where new texts go. Parts that may stay in the pool have an arena
// apart from the objects they came with, so that they do not keep text of
// objects long gone.
type arena struct {
	chunk   []byte
	headers []string
	numbers []uint64
}

const (
	ownArena = iota
	sharedArena
)

// Chunks are small, because one live string keeps its chunk: at most two of
// them hold a pod's own 400 bytes.
const chunkBytes, chunkHeaders, chunkNumbers = 1024, 16, 8

// number returns memory for a number or boolean behind a pointer. No other
// pointer shares it.
func (t *textMaker) number() unsafe.Pointer {
	a := &t.arenas[t.current]
	if len(a.numbers) == 0 {
		a.numbers = make([]uint64, chunkNumbers)
	}
	n := &a.numbers[0]
	a.numbers = a.numbers[1:]
	return unsafe.Pointer(n)
}

// string returns b as a string.
func (t *textMaker) string(b []byte) string {
	s, _ := t.find(b)
	return s
}

// find returns b as a string, and whether it was known.
func (t *textMaker) find(b []byte) (s string, known bool) {
	switch {
	case len(b) == 0:
		return "", false
	case len(b) > recent.MaxText:
		return string(b), false
	}
	if s, known = t.known.Get(t.seed, b); known {
		return s, true
	}
	a := &t.arenas[t.current]
	if len(b) > cap(a.chunk)-len(a.chunk) {
		a.chunk = make([]byte, 0, chunkBytes)
	}
	from := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return unsafe.String(&a.chunk[from], len(b)), false
}

// box returns b as a string in an interface.
func (t *textMaker) box(b []byte) any {
	s, known := t.find(b)
	if known {
		at := t.boxed.Slot(uint64(uintptr(unsafe.Pointer(unsafe.StringData(s)))>>3), recent.TextSlots)
		if had, _ := (*at).(string); had != s {
			*at = s
		}
		return *at
	}
	a := &t.arenas[t.current]
	if len(a.headers) == 0 {
		a.headers = make([]string, chunkHeaders)
	}
	header := &a.headers[0]
	a.headers = a.headers[1:]
	*header = s
	return boxString(header)
}

var stringInBox, sliceInBox = any(""), any([]any{})

// boxString and boxSlice make interfaces of values that nobody changes, without
// an allocation for each.
func boxString(s *string) (x any) {
	*(*shape.Interface)(unsafe.Pointer(&x)) = shape.Interface{Type: (*shape.Interface)(unsafe.Pointer(&stringInBox)).Type, Data: unsafe.Pointer(s)}
	return x
}

func boxSlice(s *[]any) (x any) {
	*(*shape.Interface)(unsafe.Pointer(&x)) = shape.Interface{Type: (*shape.Interface)(unsafe.Pointer(&sliceInBox)).Type, Data: unsafe.Pointer(s)}
	return x
}
