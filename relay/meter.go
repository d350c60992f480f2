package relay

import (
	"io"
	"net/http"
	"sync/atomic"
)

// meter counts what is written to a client, as it is after compression and before TLS.
type meter struct {
	http.ResponseWriter
	// began is called when an answer begins.
	began            func()
	resource, client *atomic.Int64
}

func (m meter) WriteHeader(code int) {
	m.began()
	m.ResponseWriter.WriteHeader(code)
}

func (m meter) Write(data []byte) (int, error) {
	n, err := m.ResponseWriter.Write(data)
	m.resource.Add(int64(n))
	if m.client != nil {
		m.client.Add(int64(n))
	}
	return n, err
}

// Unwrap leads http.ResponseController to deadlines and flushing.
func (m meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// countedBody counts what is read of an answer of the origin.
type countedBody struct {
	io.ReadCloser
	count *atomic.Int64
}

func (b countedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.count.Add(int64(n))
	return n, err
}
