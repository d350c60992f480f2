package ctrlcache_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/kube"
)

// withoutStreamedLists makes a server one that does not stream lists, as 1.31 and 1.33 do not.
// Streamed lists are watches, which have no limit.
func withoutStreamedLists(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			return next.RoundTrip(r)
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden"}`
		return &http.Response{
			StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	})
}

// nowhere is a sink that keeps nothing.
type nowhere struct{}

func (nowhere) Policy() tarn.SinkPolicy[any]                          { return tarn.SinkPolicy[any]{Name: "nowhere"} }
func (nowhere) Open(context.Context, func() error) (tarn.Kept, error) { return tarn.Kept{}, nil }
func (nowhere) Commit(context.Context, tarn.Batch[any]) error         { return nil }
func (nowhere) Close()                                                {}

// TestRateLimitOfEachInformer starts as many informers as an operator of many namespaces has,
// with a limit on the rate of requests. The limit is that of each informer by itself.
func TestRateLimitOfEachInformer(t *testing.T) {
	makers := append(slices.Clip(makers), maker{"ours on disk", ctrlcache.WithDisk(kube.Keeper{
		// Sinks ask for the identity of the server.
		Sink: func(of kube.Origin) (tarn.Sink[any], error) {
			_, err := of.ServerUID(context.Background())
			return nowhere{}, client.IgnoreNotFound(err)
		},
	})})
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				namespaces := map[string]cache.Config{}
				for i := range 40 {
					name := fmt.Sprint("n", i)
					namespaces[name] = cache.Config{}
					if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "c"}}); err != nil {
						t.Fatal(err)
					}
				}
				config := server.Config()
				config.QPS, config.Burst = 5, 10 // what client-go has where a config has none
				config.Wrap(withoutStreamedLists)
				c, err := m.make(config, cache.Options{Mapper: newMapper(), DefaultNamespaces: namespaces})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = c.Start(ctx) })
				defer running.Wait()
				defer cancel()
				if _, err := c.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if !c.WaitForCacheSync(ctx) {
					t.Fatal("the cache does not sync")
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("40 informers took %v to sync", took)
				}
			})
		})
	}
}
