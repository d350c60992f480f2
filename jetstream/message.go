package jetstream

import (
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/tarnproject/tarn"
)

// message is one write to a bucket.
type message struct {
	subject string
	header  header
	data    []byte
}

// size is about what the message takes on the wire, as the server counts it.
func (m message) size() int {
	n := len(m.data) + len("NATS/1.0\r\n\r\n")
	for _, f := range m.header {
		n += len(f.name) + len(f.value) + len(": \r\n")
	}
	return n
}

// roomForBatch is what the headers of an atomic batch add to a message.
const roomForBatch = 160

// longestKey is how long a key of the bucket may be: servers bound the line that has the
// subject.
const longestKey = 2048

// object makes the message of a change, or says why the object cannot be kept. The message
// lies in the space of the writer.
func (s *Sink[T]) object(in *writer[T], c tarn.Change[T], epoch string) (message, error) {
	key := escapeKey(c.Key)
	m := message{subject: s.bucket.prefix() + key}
	if len(key) > longestKey {
		return m, fmt.Errorf("its key has %d bytes as a key of the bucket, and %d are possible", len(key), longestKey)
	}
	m.header = in.fields[len(in.fields):]
	err := s.describe(in, &m, c, epoch)
	in.fields = append(in.fields, m.header...) // which is there already, if there was room
	m.header = m.header[:len(m.header):len(m.header)]
	if err == nil && c.Type != tarn.Delete {
		err = s.fits(m)
	}
	return m, err
}

// describe adds the headers and the data of a change.
func (s *Sink[T]) describe(in *writer[T], m *message, c tarn.Change[T], epoch string) error {
	h := &m.header
	h.escaped(HeaderVersion, string(c.Version))
	h.escaped(HeaderEpoch, epoch)
	if c.Rewound {
		h.add(HeaderRewound, "true")
	}
	if c.Missed {
		h.add(HeaderMissed, "true")
	}
	switch c.Type {
	case tarn.Delete:
		h.add(HeaderType, "delete")
		if s.bucket.Events {
			s.lastState(in, m, c)
			return nil
		}
		h.add(headerOperation, operationDeleted)
		if s.bucket.serverForgets() {
			h.add(headerTTL, strconv.FormatInt(int64(s.bucket.Tombstones.Seconds()), 10))
		}
		return nil
	case tarn.Add:
		h.add(HeaderType, "add")
	default:
		h.add(HeaderType, "update")
	}
	meta, err := s.codec.Describe(c.Object)
	if err != nil {
		return err
	}
	h.escaped(HeaderUID, meta.UID)
	if m.data, err = in.object(c.Object); err != nil {
		return err
	}
	h.add(HeaderDigest, digest(string(c.Version), meta.UID, m.data))
	return nil
}

// lastState adds the last state of a deleted object to its message, where it is known.
func (s *Sink[T]) lastState(in *writer[T], m *message, c tarn.Change[T]) {
	if c.Missed {
		return // it may not be the last one
	}
	meta, err := s.codec.Describe(c.Object)
	if err != nil {
		return // without the object: folded changes do not have it
	}
	m.header.escaped(HeaderUID, meta.UID)
	if m.data, err = in.object(c.Object); err != nil {
		return
	}
	if s.fits(*m) != nil {
		m.data = nil // that it is gone counts more than what it was
	}
}

// fits says whether the server takes a message.
func (s *Sink[T]) fits(m message) error {
	limit, size := int(s.js.Conn().MaxPayload()), m.size()+roomForBatch
	if limit > 0 && size > limit {
		return fmt.Errorf("it has %d bytes with its headers, and the server takes %d: raise max_payload there, or leave fields out", size, limit)
	}
	return nil
}

// digest distinguishes a state of an object from others. It need not resist an attacker:
// it is compared only with that of the same object, to leave out what is there already.
func digest(version, uid string, data []byte) string {
	var space [128]byte
	head := strconv.AppendInt(space[:0], int64(len(version)), 10)
	head = append(append(append(head, ' '), version...), ' ')
	head = strconv.AppendInt(head, int64(len(uid)), 10)
	head = append(append(append(head, ' '), uid...), ' ')
	var h xxhash.Digest
	h.Reset()
	_, _ = h.Write(head) // never fails, nor does the next
	_, _ = h.Write(data)
	return strconv.FormatUint(h.Sum64(), 16)
}

// state is what a message of an object says, without the object.
type state struct {
	tarn.Meta
	deleted         bool
	missed, rewound bool
	// foreign says that no feeder wrote it.
	foreign       bool
	epoch, digest string
}

// absent says that there is no object.
func (s state) absent() bool { return s.deleted || s.Key == "" }

// stateOf reads the headers of a message of an object.
func stateOf(key tarn.Key, h nats.Header) state {
	return state{
		Meta:    tarn.Meta{Key: key, Version: tarn.Version(unescaped(h, HeaderVersion)), UID: unescaped(h, HeaderUID)},
		deleted: h.Get(HeaderType) == "delete" || h.Get(headerOperation) != "",
		foreign: h.Get(HeaderType) == "",
		missed:  h.Get(HeaderMissed) != "", rewound: h.Get(HeaderRewound) != "",
		epoch: unescaped(h, HeaderEpoch), digest: h.Get(HeaderDigest),
	}
}
