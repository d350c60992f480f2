package jetstream

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/tarnproject/tarn"
)

// message is one write to a bucket.
type message struct {
	subject string
	header  nats.Header
	data    []byte
}

// size is about what the message takes on the wire, as the server counts it.
func (m message) size() int {
	n := len(m.data) + len("NATS/1.0\r\n\r\n")
	for name, values := range m.header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// roomForBatch is what the headers of an atomic batch add to a message.
const roomForBatch = 160

// longestKey is how long a key of the bucket may be: servers bound the line that has the
// subject.
const longestKey = 2048

// object makes the message of a change, or says why the object cannot be kept. The message
// has what it appends to buf.
func (s *Sink[T]) object(buf []byte, c tarn.Change[T], epoch string) (message, []byte, error) {
	key := escapeKey(c.Key)
	m := message{subject: s.bucket.prefix() + key, header: nats.Header{}}
	if len(key) > longestKey {
		return m, buf, fmt.Errorf("its key has %d bytes as a key of the bucket, and %d are possible", len(key), longestKey)
	}
	set(m.header, HeaderVersion, string(c.Version))
	set(m.header, HeaderEpoch, epoch)
	if c.Rewound {
		m.header.Set(HeaderRewound, "true")
	}
	if c.Missed {
		m.header.Set(HeaderMissed, "true")
	}
	switch c.Type {
	case tarn.Delete:
		m.header.Set(HeaderType, "delete")
		if s.bucket.Events {
			buf = s.lastState(buf, &m, c)
			return m, buf, nil
		}
		m.header.Set(headerOperation, operationDeleted)
		m.header.Set(headerTTL, strconv.FormatInt(int64(s.bucket.Tombstones.Seconds()), 10))
		return m, buf, nil
	case tarn.Add:
		m.header.Set(HeaderType, "add")
	default:
		m.header.Set(HeaderType, "update")
	}
	meta, err := s.codec.Describe(c.Object)
	if err != nil {
		return m, buf, err
	}
	set(m.header, HeaderUID, meta.UID)
	after, err := s.codec.Append(buf, c.Object)
	if err != nil {
		return m, buf, err
	}
	m.data = after[len(buf):len(after):len(after)]
	m.header.Set(HeaderDigest, digest(string(c.Version), meta.UID, m.data))
	return m, after, s.fits(m)
}

// lastState adds the last state of a deleted object to its message, where it is known.
func (s *Sink[T]) lastState(buf []byte, m *message, c tarn.Change[T]) []byte {
	if c.Missed {
		return buf // it may not be the last one
	}
	meta, err := s.codec.Describe(c.Object)
	if err != nil {
		return buf // without the object: folded changes do not have it
	}
	set(m.header, HeaderUID, meta.UID)
	after, err := s.codec.Append(buf, c.Object)
	if err != nil {
		return buf
	}
	m.data = after[len(buf):len(after):len(after)]
	if s.fits(*m) != nil {
		m.data = nil // that it is gone counts more than what it was
		return buf
	}
	return after
}

// fits says whether the server takes a message.
func (s *Sink[T]) fits(m message) error {
	limit, size := int(s.js.Conn().MaxPayload()), m.size()+roomForBatch
	if limit > 0 && size > limit {
		return fmt.Errorf("it has %d bytes with its headers, and the server takes %d: raise max_payload there, or leave fields out", size, limit)
	}
	return nil
}

// set sets a header that is not empty. Characters that headers do not keep, such as spaces
// at the end, are escaped as in a URL.
func set(h nats.Header, name, value string) {
	if value != "" {
		h.Set(name, url.PathEscape(value))
	}
}

func get(h nats.Header, name string) string {
	text := h.Get(name)
	if value, err := url.PathUnescape(text); err == nil {
		return value
	}
	return text
}

// digest tells a state of an object from others. It need not resist an attacker: it is
// compared only with that of the same object, to leave out what is there already.
func digest(version, uid string, data []byte) string {
	h := xxhash.New()
	fmt.Fprintf(h, "%d %s %d %s ", len(version), version, len(uid), uid)
	_, _ = h.Write(data) // never fails
	return strconv.FormatUint(h.Sum64(), 16)
}

// state is what a message of an object says, without the object.
type state struct {
	tarn.Meta
	deleted         bool
	missed, rewound bool
	epoch, digest   string
}

// absent says that there is no object.
func (s state) absent() bool { return s.deleted || s.Key == "" }

// stateOf reads the headers of a message of an object.
func stateOf(key tarn.Key, h nats.Header) state {
	return state{
		Meta:    tarn.Meta{Key: key, Version: tarn.Version(get(h, HeaderVersion)), UID: get(h, HeaderUID)},
		deleted: h.Get(HeaderType) == "delete" || h.Get(headerOperation) != "",
		missed:  h.Get(HeaderMissed) != "", rewound: h.Get(HeaderRewound) != "",
		epoch: get(h, HeaderEpoch), digest: h.Get(HeaderDigest),
	}
}
