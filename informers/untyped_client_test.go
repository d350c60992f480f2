package informers_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	upstreamdynamic "k8s.io/client-go/dynamic/dynamicinformer"
	upstream "k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	upstreammetadata "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	stock "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
	"github.com/tarnproject/tarn/informers/metadatainformer"
	"github.com/tarnproject/tarn/internal/proxytest"
)

// The informers of a dynamic and of a metadata client send the requests that client-go's
// send, and hold what client-go's hold.
func TestUntypedClientsSameAsStock(t *testing.T) {
	_, config := serve(t)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	tweak := func(o *metav1.ListOptions) { o.LabelSelector = "app!=z" }
	untyped := func(c *rest.Config) dynamic.Interface { return dynamic.NewForConfigOrDie(c) }
	partial := func(c *rest.Config) metadata.Interface { return metadata.NewForConfigOrDie(c) }
	for name, made := range map[string]struct {
		stock, ours func(*rest.Config) upstream.GenericInformer
	}{
		"dynamic": {
			func(c *rest.Config) upstream.GenericInformer {
				return upstreamdynamic.NewFilteredDynamicInformer(untyped(c), pods, "north", 0, stock.Indexers{}, tweak)
			},
			func(c *rest.Config) upstream.GenericInformer {
				return dynamicinformer.NewFilteredDynamicInformer(untyped(c), pods, "north", 0, cache.Indexers{}, tweak)
			},
		},
		"metadata": {
			func(c *rest.Config) upstream.GenericInformer {
				return upstreammetadata.NewFilteredMetadataInformer(partial(c), pods, "north", 0, stock.Indexers{}, tweak)
			},
			func(c *rest.Config) upstream.GenericInformer {
				return metadatainformer.NewFilteredMetadataInformer(partial(c), pods, "north", 0, cache.Indexers{}, tweak)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			type observation struct {
				Requests []string
				Objects  []metav1.Object
			}
			observe := func(build func(*rest.Config) upstream.GenericInformer) (seen observation) {
				sent := &proxytest.Recorder{}
				config := rest.CopyConfig(config)
				config.WrapTransport = sent.Wrap
				informer := build(config).Informer()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				done := make(chan struct{})
				go func() {
					defer close(done)
					informer.RunWithContext(ctx)
				}()
				if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
					t.Error("the informer has not synced")
				}
				for _, object := range informer.GetStore().List() {
					seen.Objects = append(seen.Objects, object.(metav1.Object))
				}
				slices.SortFunc(seen.Objects, func(a, b metav1.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
				seen.Requests = sent.Requests()
				cancel()
				<-done
				return seen
			}
			stock, ours := observe(made.stock), observe(made.ours)
			if diff := gocmp.Diff(stock, ours); diff != "" {
				t.Errorf("client-go and ours differ (-client-go +ours):\n%s", diff)
			}
			if len(stock.Objects) != 30 || len(stock.Requests) != 1 {
				t.Errorf("%d objects by %d requests, wanted 30 by 1", len(stock.Objects), len(stock.Requests))
			}
		})
	}
}
