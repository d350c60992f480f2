package kube

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/metrics"
)

// observe reports the duration and the size of a list to client-go's metrics, because
// client-go reports only bodies that it reads itself. As in client-go, the address has
// placeholders instead of values, so that a label made of it has few values.
func (c *Client) observe(ctx context.Context, r request, began time.Time, body *countingBody) {
	of := r.collection
	if of.Namespace != "" {
		of.Namespace = "{namespace}"
	}
	address := *c.at(of).
		SpecificallyVersionedParams(&r.options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).URL()
	query := address.Query()
	for name := range query {
		query.Set(name, "{value}")
	}
	address.RawQuery = query.Encode()
	metrics.RequestLatency.Observe(ctx, http.MethodGet, address, time.Since(began))
	metrics.RequestSize.Observe(ctx, http.MethodGet, address.Host, 0)
	if body.ReadCloser != nil {
		metrics.ResponseSize.Observe(ctx, http.MethodGet, address.Host, float64(body.size.Load()))
	}
}

// countingBody counts what is read of a body, also of one that is left behind.
type countingBody struct {
	io.ReadCloser
	size atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size.Add(int64(n))
	return n, err
}
