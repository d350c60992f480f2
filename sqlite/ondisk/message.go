package ondisk

import "sync"

// message is what generated protobuf types have.
type message interface {
	Size() int
	// MarshalToSizedBuffer writes to the end of a buffer, and says how much.
	MarshalToSizedBuffer([]byte) (int, error)
}

// room has space for nearly every object.
type room [64 << 10]byte

var rooms = sync.Pool{New: func() any { return new(room) }}

// appendMessage writes an object behind buf.
//
// Why not ask for its size first: that goes through all of it, and formats every
// quantity in it, as writing does; it is a third of the work.
func appendMessage(buf []byte, m message) ([]byte, error) {
	r := rooms.Get().(*room)
	defer rooms.Put(r)
	if n, fits, err := r.write(m); fits {
		return append(buf, r[len(r)-n:]...), err
	}
	at, size := len(buf), m.Size()
	if cap(buf)-at < size {
		buf = append(make([]byte, 0, at+size+size/4), buf...)
	}
	buf = buf[:at+size]
	_, err := m.MarshalToSizedBuffer(buf[at:])
	return buf, err
}

// write writes a message to the end of the room. One that is larger makes generated
// code panic; so does one that cannot be written at all, which shows when it is
// written to a buffer of its size.
func (r *room) write(m message) (n int, fits bool, err error) {
	defer func() {
		if recover() != nil {
			n, fits, err = 0, false, nil
		}
	}()
	n, err = m.MarshalToSizedBuffer(r[:])
	return n, true, err
}
