package jsonend

import "encoding/binary"

// find makes the masks of a block, eight bytes at a time. It is written out, because the
// compiler does not unroll loops.
func find(text *[blockSize]byte) (b block) {
	w0, w1 := binary.LittleEndian.Uint64(text[0:8]), binary.LittleEndian.Uint64(text[8:16])
	w2, w3 := binary.LittleEndian.Uint64(text[16:24]), binary.LittleEndian.Uint64(text[24:32])
	w4, w5 := binary.LittleEndian.Uint64(text[32:40]), binary.LittleEndian.Uint64(text[40:48])
	w6, w7 := binary.LittleEndian.Uint64(text[48:56]), binary.LittleEndian.Uint64(text[56:64])
	const q, c = quotes, backslashes
	b.quotes = transpose(equal(w0, q)>>7 | equal(w1, q)>>6 | equal(w2, q)>>5 | equal(w3, q)>>4 |
		equal(w4, q)>>3 | equal(w5, q)>>2 | equal(w6, q)>>1 | equal(w7, q))
	r0, r1, r2, r3 := bracket(w0), bracket(w1), bracket(w2), bracket(w3)
	r4, r5, r6, r7 := bracket(w4), bracket(w5), bracket(w6), bracket(w7)
	// Opening brackets have bit 1, closing ones bit 2, and what else bracket finds has both or
	// neither.
	one := r0&(w0<<6)>>7 | r1&(w1<<6)>>6 | r2&(w2<<6)>>5 | r3&(w3<<6)>>4 | r4&(w4<<6)>>3 | r5&(w5<<6)>>2 | r6&(w6<<6)>>1 | r7&(w7<<6)
	two := r0&(w0<<5)>>7 | r1&(w1<<5)>>6 | r2&(w2<<5)>>5 | r3&(w3<<5)>>4 | r4&(w4<<5)>>3 | r5&(w5<<5)>>2 | r6&(w6<<5)>>1 | r7&(w7<<5)
	b.opens, b.closes = transpose(one&^two), transpose(two&^one)
	if some := maybe(w0) | maybe(w1) | maybe(w2) | maybe(w3) | maybe(w4) | maybe(w5) | maybe(w6) | maybe(w7); some&highBits != 0 {
		b.backslashes = transpose(equal(w0, c)>>7 | equal(w1, c)>>6 | equal(w2, c)>>5 | equal(w3, c)>>4 |
			equal(w4, c)>>3 | equal(w5, c)>>2 | equal(w6, c)>>1 | equal(w7, c))
	}
	return b
}

// equal has the high bit of each byte of w set that is equal to that of text, which is ASCII.
func equal(w, text uint64) uint64 {
	// The high bit of a byte becomes 1 if any of its other bits differs.
	differs := (w^text)&^highBits + ^uint64(highBits) | w
	return ^differs & highBits
}

// bracket has the high bit of each byte of w set that is a bracket, or one of Y, y, _ and DEL.
func bracket(w uint64) uint64 { return equal(w|bracketBits, bracketText) }

// maybe has a high bit set if one of eight bytes is a backslash, perhaps not its own.
func maybe(w uint64) uint64 {
	x := w ^ backslashes
	return (x - lowBits) &^ x
}

// transpose swaps rows and columns of eight by eight bits.
func transpose(m uint64) uint64 {
	t := (m ^ m>>7) & 0x00aa00aa00aa00aa
	m ^= t ^ t<<7
	t = (m ^ m>>14) & 0x0000cccc0000cccc
	m ^= t ^ t<<14
	t = (m ^ m>>28) & 0x00000000f0f0f0f0
	return m ^ t ^ t<<28
}

const (
	lowBits     = 0x0101010101010101
	highBits    = 0x8080808080808080
	quotes      = '"' * lowBits
	backslashes = '\\' * lowBits
	// bracketBits are the bits in which {, }, [ and ] differ, bracketText all four with all
	// of them.
	bracketBits = 0x26 * lowBits
	bracketText = 0x7f * lowBits
)
