package sqlite

import (
	"encoding/binary"
	"errors"
	"hash"
	"math"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/blake2b"
)

// Sum is a checksum of a row, by which damage is found and changes are told.
//
// Why not a CRC: who may write objects can make two that have the same one, and with
// 32 bits chance does it too; whoever compares by it then keeps the old one for good.
type Sum [16]byte

// number is what a sum adds to the sum of all rows.
func (s Sum) number() uint64 { return binary.LittleEndian.Uint64(s[:]) }

func sumOf(raw []byte) (s Sum) {
	copy(s[:], raw)
	return s
}

// summer makes sums by BLAKE2b with a key. The key is derived from the encryption key
// where there is one, so that whoever has the file cannot try out what an object may
// be. Any number of goroutines may use it.
//
// Why not HMAC-SHA256: where the processor has no instructions for it, that takes four
// times as long, which is a third of the time to load a collection.
type summer struct{ hashes sync.Pool }

func newSummer(key []byte) (*summer, error) {
	if _, err := blake2b.New(len(Sum{}), key); err != nil {
		return nil, err
	}
	return &summer{sync.Pool{New: func() any {
		h, _ := blake2b.New(len(Sum{}), key) // it was tried
		return &sumHash{h: h}
	}}}, nil
}

// sumHash takes fields, each with its length before it.
type sumHash struct {
	h   hash.Hash
	buf [512]byte
}

// sum calls with to write what the sum is of.
func (s *summer) sum(write func(*sumHash)) Sum {
	h := s.hashes.Get().(*sumHash)
	defer s.hashes.Put(h)
	h.h.Reset()
	write(h)
	return Sum(h.h.Sum(h.buf[:0]))
}

func (h *sumHash) length(n int) {
	binary.LittleEndian.PutUint64(h.buf[:8], uint64(n))
	_, _ = h.h.Write(h.buf[:8]) // never fails
}

func (h *sumHash) bytes(b []byte) {
	h.length(len(b))
	_, _ = h.h.Write(b)
}

func (h *sumHash) text(s string) {
	h.length(len(s))
	for len(s) > 0 {
		n := copy(h.buf[:], s)
		_, _ = h.h.Write(h.buf[:n])
		s = s[n:]
	}
}

func (h *sumHash) int(n int64) { h.length(int(n)) }

// value takes a value of a column such that it is the same before it is written and
// after it was read: SQLite makes a number of a text that looks like one, a real of an
// integer or the other way round, as the column's type says.
func (h *sumHash) value(v any) {
	switch v := v.(type) {
	case nil:
		h.text("null")
	case bool:
		if v {
			h.whole(1)
		} else {
			h.whole(0)
		}
	case int:
		h.whole(int64(v))
	case int64:
		h.whole(v)
	case float64:
		h.real(v)
	case string:
		h.numeric(v)
	case JSON:
		h.numeric(string(v))
	case Text:
		h.numeric(string(v))
	case []byte:
		h.text("bytes")
		h.bytes(v)
	}
}

func (h *sumHash) numeric(s string) {
	trimmed := strings.TrimSpace(s)
	if trimmed == "Inf" || trimmed == "-Inf" { // as a column of text has it
		h.real(math.Inf(len("Inf") - len(trimmed)))
		return
	}
	if trimmed != "" && !strings.ContainsFunc(trimmed, notInNumbers) {
		if n, err := strconv.ParseInt(trimmed, 10, 64); err == nil {
			h.whole(n)
			return
		}
		if x, err := strconv.ParseFloat(trimmed, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			h.real(x)
			return
		}
	}
	h.text("text")
	h.text(s)
}

func notInNumbers(r rune) bool { return !strings.ContainsRune("0123456789+-.eE", r) }

func (h *sumHash) whole(n int64) {
	h.text("number")
	h.int(n)
}

// real takes twelve digits: SQLite does not read texts of more to the last bit.
func (h *sumHash) real(x float64) {
	if math.IsNaN(x) {
		h.text("null") // which SQLite has in its place
		return
	}
	if n := int64(x); float64(n) == x && math.Abs(x) < 1<<62 {
		h.whole(n)
		return
	}
	h.text("real")
	h.text(strconv.FormatFloat(x, 'e', 12, 64))
}
