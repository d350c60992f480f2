package apiserver

import (
	"encoding/json"
	"fmt"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// media is how things are written.
type media uint8

const (
	asJSON media = iota
	asYAML
	asProtobuf
)

var mediaTypes = [...]string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}

func (m media) String() string { return mediaTypes[m] }

// shape is how much of an object is shown.
type shape uint8

const (
	whole shape = iota
	partial
	table
)

var (
	partialKind     = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	partialListKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
	tableKind       = metav1.SchemeGroupVersion.WithKind("Table")
	statusKind      = schema.GroupVersionKind{Version: "v1", Kind: "Status"}
)

// form is everything that the encoding of an object depends on.
type form struct {
	endpoint *endpoint
	media    media // asJSON or asProtobuf
	shape    shape // whole or partial
}

// kind is the kind that the encoded value names.
func (f form) kind() schema.GroupVersionKind {
	if f.shape == partial {
		return partialKind
	}
	return f.endpoint.gvk()
}

// encodings bounds the encodings that objects keep beside their own: once they are too
// many, all are dropped. What is in use is soon made again, and nothing has to be
// remembered of what was used when.
type encodings struct {
	most int64

	mu    sync.Mutex
	bytes int64
	// kept may have an object more than once, and must not keep it alive.
	kept []weak.Pointer[Object]
}

func (k *encodings) keep(e *Object, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, weak.Make(e))
	if k.bytes += int64(size); k.bytes < k.most {
		return
	}
	for _, pointer := range k.kept {
		if e := pointer.Value(); e != nil {
			e.mu.Lock()
			e.forms = nil
			e.mu.Unlock()
		}
	}
	k.bytes, k.kept = 0, nil
}

// of encodes an object: the protobuf message without an envelope, or the JSON
// object with kind and apiVersion at its beginning. Each form is encoded once and
// kept with the object: a thousand watchers get the same bytes.
func (k *encodings) of(e *Object, f form) ([]byte, error) {
	if f.shape == whole && f.endpoint.storedAs() && e.in.custom == (f.media == asJSON) {
		return e.raw, nil
	}
	data, fresh, err := e.form(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s as %s: %w", f.endpoint.plural, e.key, f.media, err)
	}
	if fresh {
		k.keep(e, len(data))
	}
	return data, nil
}

// form also returns whether the encoding is new.
func (e *Object) form(f form) (data []byte, fresh bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if data, ok := e.forms[f]; ok {
		return data, false, nil
	}
	if data, err = e.encode(f); err != nil {
		return nil, false, err
	}
	if e.forms == nil {
		e.forms = map[form][]byte{}
	}
	e.forms[f] = data
	return data, true, nil
}

func (e *Object) encode(f form) ([]byte, error) {
	object, err := e.object()
	if err != nil {
		return nil, err
	}
	if f.shape == partial {
		object, err = partialOf(object)
	} else {
		object, err = f.endpoint.fromStored(object)
	}
	if err != nil {
		return nil, err
	}
	if f.media == asJSON {
		return encodeJSON(object)
	}
	typed, ok := object.(message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", object)
	}
	return typed.Marshal()
}

func partialOf(object runtime.Object) (*metav1.PartialObjectMetadata, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	part := meta.AsPartialObjectMetadata(accessor)
	part.SetGroupVersionKind(partialKind)
	return part, nil
}

// encodeJSON writes one line without its end.
func encodeJSON(object any) ([]byte, error) {
	if u, ok := object.(interface{ UnstructuredContent() map[string]any }); ok {
		return json.Marshal(u.UnstructuredContent())
	}
	return json.Marshal(object)
}

// jsonHead is how the JSON of a built-in object begins.
func jsonHead(kind schema.GroupVersionKind) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, kind.Kind, kind.GroupVersion().String())
}
