package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/faults"
	"github.com/tarnproject/tarn/internal/testsize"
)

// A copy behind a faulty network, in both media types, of one and of several
// namespaces, equals the server once the server has sent each object again.
func TestReflectConverges(t *testing.T) {
	for seed := range uint64(testsize.Of(24, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				mix := faults.Random(seed).Mix()
				for _, k := range []faults.Kind{faults.Rewind, faults.Wipe} {
					delete(mix, k)
				}
				plan := faults.New(seed, mix)
				plan.Until(time.Now().Add(time.Hour))
				cfg := server.Config()
				cfg.QPS = -1
				if seed%2 == 1 {
					cfg.AcceptContentTypes = "application/json"
				}
				writer := kubernetes.NewForConfigOrDie(server.Config()).CoreV1()
				cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
					return faults.Transport(rt, plan, faults.TransportOptions{})
				})
				ctx, cancel := context.WithCancel(t.Context())
				namespaces := []string{"a", "b"}
				put := func(i int) {
					_ = server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[i%2], Name: fmt.Sprint("o", i)}, Data: map[string]string{"x": fmt.Sprint(time.Now())}})
				}
				for i := range 12 {
					put(i)
				}
				opts := []Option{WatchList(seed%3 != 0), PageSize(int64(seed % 4 * 3)), OnError(func(context.Context, error) {}), OnBad(func(context.Context, tarn.BadObject) {})}
				if seed%5 < 3 {
					opts = append(opts, Namespaces("a", "b"))
				}
				r, err := Reflect[*corev1.ConfigMap](ctx, cfg, opts...)
				if err != nil {
					t.Fatal(err)
				}
				g := rand.New(rand.NewPCG(seed, 2))
				for range 200 {
					time.Sleep(time.Duration(g.IntN(36)) * time.Second)
					i := g.IntN(12)
					if g.IntN(4) == 0 {
						_ = writer.ConfigMaps(namespaces[i%2]).Delete(ctx, fmt.Sprint("o", i), metav1.DeleteOptions{})
					} else {
						put(i)
					}
				}
				time.Sleep(time.Hour)
				for i := range 12 {
					put(i)
				}
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				list, err := writer.ConfigMaps("").List(ctx, metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				want, got := map[string]string{}, map[string]string{}
				for _, o := range list.Items {
					want[o.Namespace+"/"+o.Name] = o.ResourceVersion
				}
				for k, o := range r.All() {
					got[string(k)] = o.ResourceVersion
				}
				if d := cmp.Diff(want, got); d != "" || !r.Health().Synced {
					t.Errorf("%s\n%+v", d, r.Health())
				}
				cancel()
				<-r.Done()
			})
		})
	}
}
