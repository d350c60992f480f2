package apiserver

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// An Object is one version of one object. It never changes.
//
// It holds the encoded bytes and not a Go value: most of a server's work is to send the
// same object to many clients, and no receiver can change the bytes. The bytes are decoded
// for a write, and for a client that accepts only another encoding. Each encoding is made
// once, is shared by all clients, and is kept for a while.
type Object struct {
	in      *storage
	key     string // namespace/name, or name
	version int64
	raw     []byte
	uid     types.UID
	labels  labels.Set

	// fields are what field selectors can ask for, beside metadata. Objects that were
	// not made of a Go value have them read when they are first asked for.
	fieldsOnce sync.Once
	fields     map[string]string

	mu    sync.Mutex
	forms map[form][]byte // see encodings
}

// Key is "namespace/name", or the name of an object without a namespace.
func (e *Object) Key() string { return e.key }

// Version is the resourceVersion.
func (e *Object) Version() int64 { return e.version }

// UID distinguishes the object from others that had its key.
func (e *Object) UID() string { return string(e.uid) }

// Labels must not be changed.
func (e *Object) Labels() labels.Set { return e.labels }

// Bytes are the object as it is kept: the bare protobuf message, or JSON for a custom
// resource. They must not be changed.
func (e *Object) Bytes() []byte { return e.raw }

// Namespace is empty for objects without one.
func (e *Object) Namespace() string { return e.namespace() }

func (e *Object) namespace() string {
	namespace, _, found := strings.Cut(e.key, "/")
	if !found {
		return ""
	}
	return namespace
}

// Name is that within the namespace.
func (e *Object) Name() string { return e.name() }

func (e *Object) name() string { return e.key[strings.IndexByte(e.key, '/')+1:] }

// object decodes the entry; the caller owns the result.
func (e *Object) object() (runtime.Object, error) { return e.in.decode(e.raw) }

func (e *Object) setFields(fields map[string]string) {
	e.fieldsOnce.Do(func() { e.fields = fields })
}

// fieldSet decodes the object unless its fields are known. One that cannot be decoded
// has none.
func (e *Object) fieldSet() map[string]string {
	e.fieldsOnce.Do(func() {
		if object, err := e.object(); err == nil {
			e.fields = e.in.selectable(object)
		}
	})
	return e.fields
}

// Has and Get make an object the subject of field selectors.
func (e *Object) Has(field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" {
		return true
	}
	_, ok := e.fieldSet()[field]
	return ok
}

func (e *Object) Get(field string) string {
	switch field {
	case "metadata.name":
		return e.name()
	case "metadata.namespace":
		return e.namespace()
	}
	return e.fieldSet()[field]
}

func joinKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// leavingObject is an object as it is sent to a watch whose selection it leaves: its last state
// there, with a later version. It is made once for all watches.
type leavingObject struct {
	once   sync.Once
	object *Object
}

func (l *leavingObject) of(last *Object, version int64) *Object {
	l.once.Do(func() {
		l.object = last
		if later, err := last.withVersion(version); err == nil {
			l.object = later
		}
	})
	return l.object
}

// left is what a watch is sent whose selection no longer matches.
func (e *Event) left() *Object { return e.leaving.of(e.Old, e.Version) }

func (c *GapChange) left(from int64) *Object { return c.leaving.of(c.Old, from) }
