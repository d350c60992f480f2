package informers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
	"github.com/tarnproject/tarn/informers/metadatainformer"
)

// Logs, error handlers and metrics name an informer after the line of the program that made it,
// and not after one of ours, which would be the same for all.
func TestInformersAreNamedByTheirProgram(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"} // nobody listens there
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	ours, err := informers.NewSharedInformerFactoryForConfig(config, 0)
	if err != nil {
		t.Fatal(err)
	}
	for of, informer := range map[string]cache.SharedIndexInformer{
		"a clientset":       informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0).Core().V1().Pods().Informer(),
		"a config":          ours.Core().V1().Pods().Informer(),
		"a dynamic client":  dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0).ForResource(pods).Informer(),
		"a metadata client": metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(config), 0).ForResource(pods).Informer(),
	} {
		names := make(chan string, 1)
		if err := informer.SetWatchErrorHandler(func(r *cache.Reflector, _ error) {
			select {
			case names <- r.Name():
			default:
			}
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			informer.RunWithContext(ctx)
			close(stopped)
		}()
		select {
		case name := <-names:
			if !strings.Contains(name, "/names_test.go:") {
				t.Errorf("the informer of %s is named %q", of, name)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("the informer of %s reports no error", of)
		}
		cancel()
		<-stopped
	}
}
