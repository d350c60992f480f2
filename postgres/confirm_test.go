package postgres

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
)

// withoutUID is the config of somebody who may not read the namespace kube-system, as with
// rights in one namespace only, for a cluster at an address.
func withoutUID(of *apiserver.Server, address string) *rest.Config {
	cfg := of.Config()
	cfg.Host = address
	cfg.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
				return next.RoundTrip(r)
			}
			return &http.Response{StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))}, nil
		})
	}))
	return cfg
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A kubeconfig is replaced by one of another cluster, and neither of the two may be asked for its
// uid: the rows are those of the other cluster afterwards.
func TestOtherClusterWithoutUID(t *testing.T) {
	db := connect(t, database(t), Options{})
	run := func(server *apiserver.Server, address string, want ...string) {
		t.Helper()
		reflect := func(ctx context.Context, _ *rest.Config, opts ...kube.Option) (*tarn.Replica[*corev1.Pod], error) {
			return kube.Reflect[*corev1.Pod](ctx, withoutUID(server, address), opts...)
		}
		defer feed(t, server, reflect, In[*corev1.Pod](db))()
		db.at(t, server, "pods")
		eventually(t, "the rows are those of "+address, func() bool {
			return fmt.Sprint(db.query(t, "SELECT name FROM pods ORDER BY name")) == fmt.Sprint(want)
		})
	}
	east, west := serverWith(t, 2), serverWith(t, 0)
	for i := range 4 {
		must(t, west.Put(pod(fmt.Sprint("west-", i), corev1.PodPending)))
	}
	run(east, "http://east.invalid", "pod-0", "pod-1")
	run(east, "http://east.invalid", "pod-0", "pod-1")
	db.wants(t, "SELECT count(*) FROM tarn_gaps", "0")
	run(west, "http://west.invalid", "west-0", "west-1", "west-2", "west-3")
}
