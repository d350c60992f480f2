package postgres

import "github.com/tarnproject/tarn/kube/columns"

// A Codec turns objects into rows. [In] and [NewObjectSink] have one for Kubernetes
// objects; other objects need their own.
//
//   - Columns has at least the columns "uid" and "resource_version", as TEXT.
//   - Row is called by one goroutine at a time. An error means that the object cannot be
//     written: it is quarantined.
//   - Decode reads an object as Row wrote it, though with fields in another order.
type Codec[T any] interface {
	Columns() []columns.Column
	Row(object T) (Row, error)
	Decode(object []byte) (T, error)
}

// Row is an object for its table.
type Row struct {
	// Values are those of the columns, in their order: see [columns.Reader].
	Values []any
	Labels map[string]string
	// Object is the whole object as JSON.
	Object []byte
}
