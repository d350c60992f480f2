package apiserver

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// entry is one version of one object, which never changes.
//
// It holds the encoded bytes and not a Go value: most of the server's work is to
// send the same object to many clients, and no receiver can change the bytes. A
// write decodes them, and so does a client that accepts only another encoding.
type entry struct {
	in      *collection
	key     string // namespace/name, or name
	version int64
	raw     []byte
	uid     types.UID
	labels  labels.Set
	fields  map[string]string // what field selectors can ask for, beside metadata

	mu    sync.Mutex
	forms map[form][]byte // see as
}

func (e *entry) namespace() string {
	namespace, _, found := strings.Cut(e.key, "/")
	if !found {
		return ""
	}
	return namespace
}

func (e *entry) name() string { return e.key[strings.IndexByte(e.key, '/')+1:] }

// object decodes the entry; the caller owns the result.
func (e *entry) object() (runtime.Object, error) { return e.in.decode(e.raw) }

// Has and Get make an entry the subject of field selectors.
func (e *entry) Has(field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" {
		return true
	}
	_, ok := e.fields[field]
	return ok
}

func (e *entry) Get(field string) string {
	switch field {
	case "metadata.name":
		return e.name()
	case "metadata.namespace":
		return e.namespace()
	}
	return e.fields[field]
}

func joinKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
