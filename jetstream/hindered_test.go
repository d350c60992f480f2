package jetstream

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/enginetest"
	"github.com/tarnproject/tarn/internal/proxytest"
	"github.com/tarnproject/tarn/kube"
)

// A server behind a slow network costs a bounded amount of memory. Health says how far behind
// it is, and afterwards it has everything, or a mark of what was folded.
func TestSlowNetwork(t *testing.T) {
	server := startServer(t)
	proxy := proxytest.Start(t, "tcp", strings.TrimPrefix(server.URL(), "nats://"))
	js := connect(t, "nats://"+proxy.Address())
	b := Bucket{Name: "b", Events: true}
	const states = 500
	t.Log(enginetest.RunHindered(t, enginetest.Hindered{
		Engine: readable(bucketClient{js: server.connect(), bucket: b}),
		Follow: func(ctx context.Context, cluster *rest.Config) (*tarn.Replica[*corev1.ConfigMap], error) {
			return kube.Reflect[*corev1.ConfigMap](ctx, cluster, kube.Sink(func(kube.Origin) (tarn.Sink[*corev1.ConfigMap], error) {
				s, err := New(js, b, Objects[*corev1.ConfigMap]())
				if err == nil {
					s.waiting = states
				}
				return s, err
			}))
		},
		Bound: states * waitingSize, States: states,
		Hinder:  func() { proxy.Limit(20 << 10) },
		Relieve: func() { proxy.Limit(0) },
	}))
}
