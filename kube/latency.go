package kube

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/metrics"
)

// listed tells client-go's metric how long a list took, since client-go tells it only of
// bodies that it reads itself. The address has names in place of values, as it has there, so
// that a label made of it has few values.
func (c *Client) listed(ctx context.Context, r request, began time.Time) {
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
}
