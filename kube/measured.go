package kube

import (
	"context"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/metrics"
)

// measured tells client-go's metrics how long a list took and how large it was, since
// client-go tells them only of bodies that it reads itself. The address has names in place of
// values, as it has there, so that a label made of it has few values.
func (c *Client) measured(ctx context.Context, r request, began time.Time, body *countedBody) {
	of := r.collection
	if of.Namespace != "" {
		of.Namespace = "{namespace}"
	}
	address := *c.rest.Get().AbsPath(of.path()...).
		SpecificallyVersionedParams(&r.options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).URL()
	query := address.Query()
	for name := range query {
		query.Set(name, "{value}")
	}
	address.RawQuery = query.Encode()
	metrics.RequestLatency.Observe(ctx, http.MethodGet, address, time.Since(began))
	metrics.RequestSize.Observe(ctx, http.MethodGet, address.Host, 0)
	if body.ReadCloser != nil {
		metrics.ResponseSize.Observe(ctx, http.MethodGet, address.Host, float64(body.size))
	}
}

// countedBody counts what is read of a body.
type countedBody struct {
	io.ReadCloser
	size int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += int64(n)
	return n, err
}
