package jsonend

import (
	"bytes"
	"math/bits"
	"testing"
)

// wantMasks checks the masks of a block against its text.
func wantMasks(t failer, text *[blockSize]byte) {
	t.Helper()
	var want block
	for i, c := range text {
		bit := uint64(1) << i
		switch c {
		case '"':
			want.quotes |= bit
		case '\\':
			want.backslashes |= bit
		case '{', '[':
			want.opens |= bit
		case '}', ']':
			want.closes |= bit
		}
	}
	if got := find(text); got != want {
		t.Fatalf("the masks of %q are %x, want %x", text, got, want)
	}
}

// Every byte is found in every place of a block, and no other byte is mistaken for it.
func TestEveryByteInEveryPlace(t *testing.T) {
	for c := range 256 {
		for place := range blockSize {
			for _, other := range []byte{0, ' ', '"', '}', byte(c) ^ 1, byte(c) - 1, 0xff} {
				text := [blockSize]byte(bytes.Repeat([]byte{other}, blockSize))
				text[place] = byte(c)
				wantMasks(t, &text)
				if other == '}' || other == '"' { // a block of brackets, and one of strings
					wantDeep(t, text[:])
				}
			}
		}
	}
}

// The byte after a run of backslashes is escaped if the run is odd, for every pair of runs in
// a block.
func TestEscapes(t *testing.T) {
	model := func(backslashes, first uint64) (escaped, next uint64) {
		is := first != 0
		for i := range 64 {
			bit := uint64(1) << i
			switch {
			case is && backslashes&bit == 0, is && i == 0:
				escaped |= bit
				is = false
			default:
				is = backslashes&bit != 0 && !is
			}
		}
		if is {
			next = 1
		}
		return escaped, next
	}
	for from := range 64 {
		for to := from; to <= 64; to++ {
			for gap := 1; gap < 4; gap++ {
				for more := range 4 {
					run := ^uint64(0) << from &^ (^uint64(0) << to)
					second := (uint64(1)<<more - 1) << min(to+gap, 63)
					for first := range uint64(2) {
						wantEscaped, wantNext := model(run|second, first)
						if escaped, next := escapes(run|second, first); escaped != wantEscaped || next != wantNext {
							t.Fatalf("of %b after %d, %b and %d are escaped, want %b and %d", run|second, first, escaped, next, wantEscaped, wantNext)
						}
					}
				}
			}
		}
	}
}

func TestParity(t *testing.T) {
	for _, m := range []uint64{0, 1, 1 << 63, 5, 0x8000000000000001, 0x123456789abcdef0, ^uint64(0)} {
		got := parity(m)
		for i := range 64 {
			if want := uint64(bits.OnesCount64(m<<(63-i)) % 2); got>>i&1 != want {
				t.Errorf("bit %d of the parity of %x is %d, want %d", i, m, got>>i&1, want)
			}
		}
	}
}
