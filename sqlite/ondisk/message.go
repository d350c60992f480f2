package ondisk

import "sync"

// message is implemented by generated protobuf types.
type message interface {
	Size() int
	// MarshalToSizedBuffer writes to the end of a buffer, and returns the number of
	// bytes.
	MarshalToSizedBuffer([]byte) (int, error)
}

// room is large enough for nearly every object.
type room [64 << 10]byte

var rooms = sync.Pool{New: func() any { return new(room) }}

// appendMessage appends an encoded object to buf.
//
// Why not compute its size first: that walks all of it, and formats every quantity in it,
// as encoding does; it is a third of the work.
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

// write encodes a message to the end of the room. Generated code panics if the message is
// larger. It also panics if the message cannot be encoded at all; then encoding it to a
// buffer of its size fails too.
func (r *room) write(m message) (n int, fits bool, err error) {
	defer func() {
		if recover() != nil {
			n, fits, err = 0, false, nil
		}
	}()
	n, err = m.MarshalToSizedBuffer(r[:])
	return n, true, err
}
