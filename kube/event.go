package kube

import (
	"bytes"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// streamError is the type of an event that ends its stream; Bad.Err is the reason.
// It never leaves this package.
const streamError tarn.EventType = 0

// watchEvent is an event whose object is not decoded yet.
type watchEvent struct {
	kind   string
	object []byte
}

// event makes an event of a frame. Bad says what is wrong with it.
func (s *Source[T]) event(m media, f frame, held wire.Held) tarn.Event[T] {
	n, ok := openFrame(m, f)
	if f.foreign {
		return s.foreignEvent(m, n)
	}
	if !ok {
		return s.unreadable(m, f, n)
	}
	t := eventType(n.kind)
	raw, kind, err := s.codec.inEnvelope(m, n.object)
	switch {
	case n.kind == string(watch.Error):
		return tarn.Event[T]{Type: streamError, Bad: tarn.BadObject{Err: s.streamStatus(m, raw, kind, err)}}
	case n.kind == string(watch.Bookmark) && err == nil:
		return s.bookmark(m, f, raw, kind)
	}
	var object T
	if err == nil {
		object, err = s.eventObject(m, raw, kind, stateInfo{wireEvents[t], held, false})
	}
	if err == nil && t == 0 {
		err = fmt.Errorf("unknown watch event %q", n.kind)
	}
	if err != nil {
		return s.badEvent(m, f, n, raw, kind, err)
	}
	return tarn.Event[T]{Type: t, Object: object}
}

func (s *Source[T]) eventObject(m media, raw []byte, kind runtime.TypeMeta, l stateInfo) (T, error) {
	object, silent, err := s.codec.object(m, raw, kind, l)
	if err == nil && silent && s.collection.Object == unstructuredType {
		fillKind(object, s.codec.kinds.want)
	}
	return object, err
}

// wireEvents says what each type of event means to the decoder.
var wireEvents = [...]wire.Event{tarn.EventAdded: wire.Added, tarn.EventModified: wire.Modified, tarn.EventDeleted: wire.Deleted, tarn.EventBookmark: wire.Standalone}

// eventType translates the types that carry an object.
func eventType(kind string) tarn.EventType {
	switch watch.EventType(kind) {
	case watch.Added:
		return tarn.EventAdded
	case watch.Modified:
		return tarn.EventModified
	case watch.Deleted:
		return tarn.EventDeleted
	case watch.Bookmark:
		return tarn.EventBookmark
	}
	return 0
}

// eventKind is the text of an event's type, without a copy of those that are known.
func eventKind(text []byte) string {
	for _, known := range []watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(text) == string(known) {
			return string(known)
		}
	}
	return string(text)
}

// badEvent reports an event whose object cannot be used.
func (s *Source[T]) badEvent(m media, f frame, n watchEvent, raw []byte, kind runtime.TypeMeta, err error) tarn.Event[T] {
	seen := excerptOf(m, raw)
	if m == mediaProtobuf {
		seen.TypeMeta = kind
	}
	t := eventType(n.kind)
	if t == 0 || t == tarn.EventDeleted && s.codec.kinds.foreign(seen.TypeMeta) != nil {
		// An event about a foreign object says nothing about ours.
		t = tarn.EventModified
	}
	return tarn.Event[T]{Type: t, Bad: seen.bad(s.at(f, err))}
}

func (s *Source[T]) at(f frame, err error) error {
	return fmt.Errorf("at byte %d of the watch of %s: %w", f.at, s.collection, err)
}

// unreadable reports a frame that is not an event, or too long to be read whole,
// with as much as its start shows. A frame that is an API object ends the stream, because
// the server or a proxy does not answer with events.
func (s *Source[T]) unreadable(m media, f frame, n watchEvent) tarn.Event[T] {
	if err := s.instead(m, f, n); err != nil {
		return tarn.Event[T]{Type: streamError, Bad: tarn.BadObject{Err: err}}
	}
	err := fmt.Errorf("%w: it is not a watch event", tarn.ErrUndecodable)
	if f.size > 0 {
		err = fmt.Errorf("%w: the event has %d bytes, the limit is %d", tarn.ErrUndecodable, f.size, s.maxItem)
	}
	if t := eventType(n.kind); t != 0 && t != tarn.EventBookmark {
		raw, kind, _ := s.codec.inEnvelope(m, n.object)
		if e := s.badEvent(m, f, n, raw, kind, err); e.Bad.Key != "" {
			return e
		}
	}
	return tarn.Event[T]{Type: tarn.EventUndecodable, Bad: tarn.BadObject{Err: s.at(f, err)}}
}

// instead is the error for a frame in JSON that is an API object, and nil for any other. In
// protobuf the envelope of such an object is no frame.
func (s *Source[T]) instead(m media, f frame, n watchEvent) error {
	if m != mediaJSON || n.object != nil {
		return nil
	}
	kind := excerptOf(m, f.raw).TypeMeta
	switch kind.Kind {
	case "":
		return nil
	case "Status":
		return s.streamStatus(m, f.raw, kind, nil)
	default:
		return fmt.Errorf("the watch of %s was answered with a %s, and not with events; does a proxy drop the parameter watch?", s.collection, kind.Kind)
	}
}

// bookmark reads a bookmark. Only the version and the annotation that ends the
// initial events matter.
func (s *Source[T]) bookmark(m media, f frame, raw []byte, kind runtime.TypeMeta) tarn.Event[T] {
	e := tarn.Event[T]{Type: tarn.EventBookmark}
	o, err := partial(m, raw)
	if err == nil && m == mediaJSON {
		kind = typeOf(o)
	}
	if err == nil {
		err = s.codec.kinds.foreign(kind)
	}
	if err != nil {
		e.Bad = tarn.BadObject{Err: s.at(f, fmt.Errorf("a bookmark cannot be used: %w", err))}
		return e
	}
	e.Version = tarn.Version(o.ResourceVersion)
	if e.InitialEnd = o.Annotations[metav1.InitialEventsAnnotationKey] == "true"; e.InitialEnd {
		s.client.pool.Settle()
	}
	return e
}

// streamStatus is the error that ends a stream.
func (s *Source[T]) streamStatus(m media, raw []byte, kind runtime.TypeMeta, err error) error {
	status := &metav1.Status{}
	if err == nil && m == mediaProtobuf {
		err = status.Unmarshal(raw)
	} else if err == nil {
		err = utiljson.Unmarshal(raw, status)
		kind = runtime.TypeMeta{APIVersion: status.APIVersion, Kind: status.Kind}
	}
	if err != nil || kind.Kind != "Status" && kind.Kind != "" {
		return fmt.Errorf("the server ended the watch of %s with an error that is not a Status (kind %q)", s.collection, kind.Kind)
	}
	return classify(s.explain("watch", apierrors.FromObject(status)))
}

// openFrame finds type and object in a watch event. ok is false if the frame is not
// an event.
func openFrame(m media, f frame) (n watchEvent, ok bool) {
	if m == mediaProtobuf {
		return openProtobufFrame(f)
	}
	return openJSONFrame(f)
}

// openProtobufFrame reads a WatchEvent: the type is field 1, the object field 2, a
// RawExtension with the object's envelope as field 1.
func openProtobufFrame(f frame) (n watchEvent, ok bool) {
	raw := f.raw
	if e, wrapped := openEnvelope(raw); wrapped {
		raw = e.raw // servers do not write this, but may
	}
	ok = fields(raw, func(field protoField) {
		switch field.number {
		case 1:
			n.kind = eventKind(field.data)
		case 2:
			fields(field.data, func(field protoField) {
				if field.number == 1 {
					n.object = field.data
				}
			})
		}
	})
	return n, ok && f.size == 0 && n.kind != "" && n.object != nil
}

// openJSONFrame reads {"type":…,"object":…}. If the frame begins as servers write
// it and has one object, it need not be searched again; anything else is parsed in
// full.
func openJSONFrame(f frame) (n watchEvent, ok bool) {
	if rest, begins := bytes.CutPrefix(f.raw, []byte(`{"type":"`)); begins && f.size == 0 && f.close > 0 {
		kind, _, found := bytes.Cut(rest, []byte(`"`))
		const between = `,"object":`
		from := len(f.raw) - len(rest) + len(kind) + 1
		if found && bytes.IndexByte(kind, '\\') < 0 && f.open == from+len(between) && string(f.raw[from:f.open]) == between && string(bytes.TrimSpace(f.raw[f.close:])) == "}" {
			return watchEvent{eventKind(kind), f.raw[f.open:f.close]}, true
		}
	}
	if f.size == 0 {
		var whole struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		err := utiljson.Unmarshal(f.raw, &whole)
		if err == nil && whole.Type != "" && len(whole.Object) > 0 && string(whole.Object) != "null" {
			return watchEvent{whole.Type, whole.Object}, true
		}
	}
	jsonFields(f.raw, func(name string, value []byte) {
		switch name {
		case "type":
			n.kind = jsonText(value)
		case "object":
			n.object = value
		}
	})
	return n, false
}
