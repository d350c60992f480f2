package apiserver

import (
	"context"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// flushFrom bounds the buffer of a watcher, except for the size of one object. A record of
// TLS has 16 KiB, and a frame of HTTP/2 too, so larger buffers save little: with 64 KiB,
// initial events cost as much CPU.
const flushFrom = 32 << 10

// stream writes the events of one watch. The first error ends it.
type stream struct {
	reader  *Reader
	request *request
	framer  framer
	out     output
	// buffer is what has gathered since the last flush, nil if nothing has: a quiet watch
	// has no buffer. It begins with what the output reserves.
	buffer *[]byte
	// events are in the buffer, bookmarks and errors not counted.
	events int
	err    error
	// alone says that the next event is the only one that there is to send.
	alone bool
	// headed says that the columns of a table have been sent.
	headed bool
}

// openStream sends the header, so that the client knows that it is being served. The
// context that it returns ends with ctx, and when the client has gone. The stream must be
// closed.
func (s *Reader) openStream(ctx context.Context, r *request) (*stream, context.Context) {
	media := r.form().media
	kind := r.form().kind()
	if r.answer.shape == table {
		kind = tableKind
	}
	o := &stream{reader: s, request: r, framer: newFramer(media, kind)}
	name := media.String()
	if media == asProtobuf {
		name += ";stream=watch"
	}
	r.w.Header().Set("Content-Type", name)
	r.w.Header().Set("Cache-Control", "no-cache, private")
	o.out, ctx = newOutput(ctx, r, s.options.OwnConnections)
	o.write(o.out.begin)
	return o, ctx
}

func (o *stream) close() { o.out.end(o.err == nil) }

// fail sends an error as the last event.
func (o *stream) fail(err error) {
	status := statusOf(err)
	encode := status.Marshal
	if o.framer.media != asProtobuf {
		encode = func() ([]byte, error) { return encodeJSON(status) }
	}
	data, err := encode()
	if err != nil {
		return
	}
	o.gather(newFramer(o.framer.media, statusKind), watch.Error, data)
	o.flush()
}

func (o *stream) emit(kind watch.EventType, e *Object) {
	if o.err != nil {
		return
	}
	var data []byte
	switch {
	case o.request.answer.shape == table:
		data, o.err = o.tableRow(e)
	case o.alone && o.buffer == nil:
		o.share(kind, e)
		return
	default:
		data, o.err = o.reader.encodings.of(e, o.request.form())
	}
	o.frame(kind, data)
}

// share sends one event out of a buffer that all streams of the same sort send: most events
// of a busy resource go to many streams, and each finds them alone.
func (o *stream) share(kind watch.EventType, e *Object) {
	of := sharedKey{e, kind, o.request.form(), o.out.reserved()}
	buffer, err := o.reader.shared.get(of, func() ([]byte, error) {
		data, err := o.reader.encodings.of(e, of.form)
		buffer := make([]byte, of.reserved, of.reserved+len(data)+frameOverhead)
		return o.out.seal(o.framer.append(buffer, kind, data)), err
	})
	if o.err = err; err != nil {
		return
	}
	o.events = 1
	o.write(func(deadline time.Time) error { return o.out.send(buffer, deadline) })
}

func (o *stream) frame(kind watch.EventType, data []byte) {
	if o.err != nil {
		return
	}
	o.gather(o.framer, kind, data)
	if kind != watch.Bookmark {
		o.events++
	}
	if len(*o.buffer) >= flushFrom {
		o.flush()
	}
}

// buffers are those of streams that have nothing to send.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled keeps buffers of exceptional objects from being kept.
const maxPooled = 4 * flushFrom

func (o *stream) gather(as framer, kind watch.EventType, data []byte) {
	if o.buffer == nil {
		o.buffer = buffers.Get().(*[]byte)
		*o.buffer = append((*o.buffer)[:0], make([]byte, o.out.reserved())...)
	}
	o.reserve(len(data) + frameOverhead)
	*o.buffer = as.append(*o.buffer, kind, data)
}

// reserve makes room for a frame. A buffer that has one already gets the room for all that
// it may hold: to grow step by step would leave more garbage behind than the buffer is large.
func (o *stream) reserve(n int) {
	b := *o.buffer
	if len(b)+n <= cap(b) {
		return
	}
	if len(b) > o.out.reserved() {
		n += max(0, flushFrom-len(b))
	}
	*o.buffer = append(make([]byte, 0, len(b)+n), b...)
}

// bookmark sends an object that has nothing but a version; after initial events
// also the annotation that says so.
func (o *stream) bookmark(version int64, initial bool) {
	if o.err != nil {
		return
	}
	var data []byte
	data, o.err = o.request.encodeBookmark(version, initial)
	o.frame(watch.Bookmark, data)
}

func (r *request) encodeBookmark(version int64, initial bool) ([]byte, error) {
	object, err := r.empty()
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(strconv.FormatInt(version, 10))
	if initial {
		accessor.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if r.answer.shape == table {
		return encodeTableBookmark(accessor)
	}
	if r.form().media == asProtobuf {
		if typed, ok := object.(message); ok {
			return typed.Marshal()
		}
	}
	return encodeJSON(object)
}

// empty is an object of the kind that the client sees.
func (r *request) empty() (runtime.Object, error) {
	if r.answer.shape != whole {
		part := &metav1.PartialObjectMetadata{}
		part.SetGroupVersionKind(partialKind)
		return part, nil
	}
	if r.custom {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(r.gvk())
		return object, nil
	}
	object, err := scheme.New(r.gvk())
	if err == nil {
		object.GetObjectKind().SetGroupVersionKind(r.gvk())
	}
	return object, err
}

// flush sends what has gathered.
func (o *stream) flush() {
	if o.err != nil || o.buffer == nil {
		return
	}
	*o.buffer = o.out.seal(*o.buffer)
	o.write(func(deadline time.Time) error { return o.out.send(*o.buffer, deadline) })
	if cap(*o.buffer) <= maxPooled {
		buffers.Put(o.buffer)
	}
	o.buffer = nil
}

// write gives the client a bounded time to read: a client that has stopped reading
// is disconnected.
func (o *stream) write(send func(deadline time.Time) error) {
	deadline := time.Now().Add(o.reader.options.WriteTimeout)
	o.err = send(deadline)
	// HTTP/1.1 and HTTP/2 report a deadline by different errors, so the clock decides.
	switch {
	case o.err == nil:
		o.reader.events.Add(int64(o.events))
	case !time.Now().Before(deadline):
		o.reader.slowClients.Add(1)
	}
	o.events = 0
}
