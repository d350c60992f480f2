package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/changelog"
)

// chunk is what a journal writes and reads at a time: events that follow each other, and
// the position after them. It needs nothing else to be read: each event has the object
// before and after it.
//
// An object is written whole once in a chunk, and after that by its number or as a
// difference. Objects of one resource are alike, so that what is left compresses well.
type chunk struct {
	position tarn.Position
	contact  time.Time
	events   []*apiserver.Event
}

// The ways in which an object is written. Later numbers are those of objects before.
const (
	noObject = iota
	wholeObject
	changedObject
	firstObject
)

// The sorts of events.
const (
	addedEvent = iota
	modifiedEvent
	deletedEvent
	gapEvent
)

var (
	eventTypes = []watch.EventType{watch.Added, watch.Modified, watch.Deleted}
	eventSorts = map[watch.EventType]uint64{watch.Added: addedEvent, watch.Modified: modifiedEvent, watch.Deleted: deletedEvent}
)

// chunkWriter encodes.
type chunkWriter struct {
	// most ends the writing early when there are more bytes.
	most    int
	b       []byte
	numbers map[*apiserver.Object]uint64
	scratch []byte
}

// encode returns the bytes of a chunk; false if there are more than a number of them.
func (c *chunk) encode(most int) ([]byte, bool) {
	w := &chunkWriter{most: most, numbers: map[*apiserver.Object]uint64{}}
	w.bytes([]byte(c.position.Version))
	w.bytes([]byte(c.position.Epoch))
	w.uint(boolNumber(c.position.Complete))
	w.uint(uint64(c.contact.UnixNano()))
	w.uint(uint64(len(c.events)))
	for _, e := range c.events {
		w.event(e)
	}
	return w.b, !w.full()
}

func boolNumber(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (w *chunkWriter) full() bool { return len(w.b) > w.most }

func (w *chunkWriter) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

func (w *chunkWriter) bytes(data []byte) {
	w.uint(uint64(len(data)))
	w.b = append(w.b, data...)
}

func (w *chunkWriter) event(e *apiserver.Event) {
	if w.full() {
		return
	}
	sort := eventSorts[e.Type]
	if e.Gap != nil {
		sort = gapEvent
	}
	w.uint(sort)
	w.uint(uint64(e.Version))
	w.uint(uint64(e.Heard.UnixNano()))
	if e.Gap == nil {
		w.object(e.Old, nil)
		w.object(e.Object, e.Old)
		return
	}
	w.uint(uint64(e.Gap.From))
	w.uint(uint64(len(e.Gap.Changes)))
	for _, c := range e.Gap.Changes {
		if w.full() {
			return
		}
		w.object(c.Old, nil)
		w.object(c.New, c.Old)
	}
}

// object writes an object, as a difference if another one is given that was written.
func (w *chunkWriter) object(o, before *apiserver.Object) {
	number, known := w.numbers[o]
	switch {
	case o == nil:
		w.uint(noObject)
		return
	case known:
		w.uint(firstObject + number)
		return
	case before != nil:
		w.uint(changedObject)
		w.uint(w.numbers[before])
		w.scratch = changelog.AppendDifference(w.scratch[:0], before.Bytes(), o.Bytes())
		w.bytes(w.scratch)
	default:
		w.uint(wholeObject)
		w.bytes(o.Bytes())
	}
	w.numbers[o] = uint64(len(w.numbers))
}

var errBadChunk = errors.New("a part of the journal is damaged")

// chunkReader decodes. The first error ends it.
type chunkReader struct {
	b       []byte
	of      *apiserver.Resource
	objects []*apiserver.Object
	err     error
}

func decodeChunk(of *apiserver.Resource, data []byte) (*chunk, error) {
	r := &chunkReader{b: data, of: of}
	c := &chunk{}
	c.position.Version, c.position.Epoch = tarn.Version(r.bytes()), string(r.bytes())
	c.position.Complete = r.uint() == 1
	c.contact = time.Unix(0, int64(r.uint()))
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		c.events = append(c.events, r.event())
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errBadChunk
	}
	return c, r.err
}

func (r *chunkReader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail(errBadChunk)
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *chunkReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *chunkReader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail(errBadChunk)
		return nil
	}
	data := r.b[:n]
	r.b = r.b[n:]
	return data
}

func (r *chunkReader) event() *apiserver.Event {
	sort := r.uint()
	e := &apiserver.Event{Version: int64(r.uint()), Heard: time.Unix(0, int64(r.uint()))}
	switch {
	case sort < gapEvent:
		e.Type = eventTypes[sort]
		e.Old, e.Object = r.object(), r.object()
		if e.Object == nil {
			r.fail(errBadChunk)
		}
	case sort == gapEvent:
		e.Gap = &apiserver.Gap{From: int64(r.uint())}
		for n := r.uint(); n > 0 && r.err == nil; n-- {
			c := &apiserver.GapChange{Old: r.object(), New: r.object()}
			if c.Old == nil && c.New == nil {
				r.fail(errBadChunk)
			}
			e.Gap.Changes = append(e.Gap.Changes, c)
		}
	default:
		r.fail(errBadChunk)
	}
	return e
}

// mostObject bounds what a difference may lead to.
const mostObject = 64 << 20

func (r *chunkReader) object() *apiserver.Object {
	how := r.uint()
	var raw []byte
	switch {
	case how == noObject || r.err != nil:
		return nil
	case how >= firstObject:
		return r.numbered(how - firstObject)
	case how == wholeObject:
		raw = append(raw, r.bytes()...)
	default:
		before := r.numbered(r.uint())
		difference := r.bytes()
		if r.err != nil {
			return nil
		}
		var err error
		if raw, err = changelog.Apply(nil, before.Bytes(), difference); err != nil || len(raw) > mostObject {
			r.fail(fmt.Errorf("%w: %w", errBadChunk, err))
			return nil
		}
	}
	if r.err != nil {
		return nil
	}
	o, err := r.of.NewObject(raw)
	if err != nil {
		r.fail(fmt.Errorf("%w: %w", errBadChunk, err))
		return nil
	}
	r.objects = append(r.objects, o)
	return o
}

func (r *chunkReader) numbered(n uint64) *apiserver.Object {
	if n >= uint64(len(r.objects)) {
		r.fail(errBadChunk)
		return nil
	}
	return r.objects[n]
}
