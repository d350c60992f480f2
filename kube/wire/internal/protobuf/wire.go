package protobuf

// The wire types of protobuf that the fast path knows. Groups (3 and 4) are left to
// the stock decoder; no server sends them.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// varint reads a number at i, and returns where the next field begins. A next of -1
// says that no number ends within ten bytes or before the end.
func varint(b []byte, i int) (v uint64, next int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	for shift := uint(0); shift < 64; shift += 7 {
		if uint(i) >= uint(len(b)) {
			return 0, -1
		}
		c := b[i]
		i++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i
		}
	}
	return 0, -1
}

// longTag reads a tag of more than one byte.
func longTag(b []byte, i int) (number int, wireType uint8, next int) {
	tag, next := varint(b, i)
	if tag >= 1<<32 {
		next = -1
	}
	return int(tag >> 3), uint8(tag & 7), next
}

// span reads a length at i and returns where the value of that length begins and
// ends. An end of -1 says that it is cut off.
func span(b []byte, i int) (start, end int) {
	n, i := varint(b, i)
	if i < 0 || n > uint64(len(b)-i) {
		return 0, -1
	}
	return i, i + int(n)
}

// skip returns where the value at i ends, or -1.
func skip(b []byte, i int, wireType uint8) int {
	switch wireType {
	case wireVarint:
		_, i = varint(b, i)
		return i
	case wireBytes:
		_, i = span(b, i)
		return i
	case wireFixed64:
		i += 8
	case wireFixed32:
		i += 4
	default:
		return -1
	}
	if i > len(b) {
		return -1
	}
	return i
}

// runEnd returns where the run of fields with the same tag that begins at i ends,
// tag included, and how many there are; -1 if the last is cut off.
func runEnd(b []byte, i int, tag uint32, tagSize int, wireType uint8) (end, n int) {
	for {
		i += tagSize
		if wireType == wireBytes && i < len(b) && b[i] < 0x80 && int(b[i]) < len(b)-i {
			i += 1 + int(b[i])
		} else if i = skip(b, i, wireType); i < 0 {
			return -1, 0
		}
		n++
		if i >= len(b) || b[i] != byte(tag) {
			return i, n
		}
		if tagSize > 1 && (i+1 >= len(b) || b[i+1] != byte(tag>>8)) {
			return i, n
		}
	}
}

// encodeTag returns the encoded tag of a field if it fits in two bytes; otherwise
// size is 0.
func encodeTag(number int, wireType uint8) (tag uint32, size int) {
	v := uint32(number)<<3 | uint32(wireType)
	switch {
	case v < 1<<7:
		return v, 1
	case v < 1<<14:
		return v&0x7f | 0x80 | v>>7<<8, 2
	}
	return 0, 0
}
