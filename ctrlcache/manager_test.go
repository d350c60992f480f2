package ctrlcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tarnproject/tarn/ctrlcache"
)

// TestManager runs a manager with a reconciler that keeps, for each pod, a config
// map with its phase. What it reads after a write must be what it wrote: a second
// creation of the same config map would fail.
func TestManager(t *testing.T) {
	for name, c := range map[string]struct {
		newClient  client.NewClientFunc
		namespaces map[string]cache.Config
	}{
		"all namespaces":              {newClient: client.New},
		"two namespaces":              {newClient: client.New, namespaces: twoNamespaces.DefaultNamespaces},
		"two namespaces, own clients": {newClient: ctrlcache.NewClient, namespaces: twoNamespaces.DefaultNamespaces},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			seed(server)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			mgr, err := ctrl.NewManager(server.config(), ctrl.Options{
				NewCache: ctrlcache.NewCache, NewClient: withJSON(c.newClient),
				Cache:          cache.Options{DefaultNamespaces: c.namespaces},
				Client:         client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
				MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return newMapper(), nil },
				Metrics:        metricsserver.Options{BindAddress: "0"},
				Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
			})
			if err != nil {
				t.Fatal(err)
			}
			r := &phases{Client: mgr.GetClient(), failed: make(chan error, 100)}
			if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).
				Watches(&corev1.ConfigMap{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &corev1.Pod{})).
				Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.OnlyMetadata).
				Complete(r); err != nil {
				t.Fatal(err)
			}
			var managing sync.WaitGroup
			managing.Go(func() {
				if err := mgr.Start(ctx); err != nil {
					t.Errorf("manager: %v", err)
				}
			})
			x := &stage{TB: t, ctx: ctx, server: server, cache: mgr.GetCache()}
			for round, phase := range []string{"Pending", "Running", "Failed"} {
				for i := range 5 {
					server.put("pods", pod([]string{"north", "south"}[i%2], fmt.Sprint("p", i), "n1", phase, ""))
				}
				x.until(fmt.Sprint("round ", round), func() bool { return server.phases(phase) >= 5 })
			}
			cancel()
			managing.Wait()
			close(r.failed)
			for err := range r.failed {
				t.Error(err)
			}
		})
	}
}

// withJSON makes a client send JSON, which is all that the server reads.
func withJSON(newClient client.NewClientFunc) client.NewClientFunc {
	return func(cfg *rest.Config, options client.Options) (client.Client, error) {
		cfg = rest.CopyConfig(cfg)
		cfg.ContentType = "application/json"
		return newClient(cfg, options)
	}
}

// phases counts the config maps that hold a phase.
func (s *apiServer) phases(phase string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.of("configmaps") {
		if data, ok := o.Object["data"].(map[string]any); ok && data["phase"] == phase && o.GetName()[0] == 'p' {
			n++
		}
	}
	return n
}

type phases struct {
	client.Client
	failed chan error
}

func (r *phases) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var p corev1.Pod
	if err := r.Get(ctx, request.NamespacedName, &p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.record(ctx, &p)
	if err != nil && ctx.Err() == nil {
		select {
		case r.failed <- fmt.Errorf("%v: %w", request, err):
		default:
		}
	}
	return reconcile.Result{}, err
}

func (r *phases) record(ctx context.Context, p *corev1.Pod) error {
	want := string(p.Status.Phase)
	var have corev1.ConfigMap
	switch err := r.Get(ctx, client.ObjectKeyFromObject(p), &have); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		have = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Data: map[string]string{"phase": want}}
		if err := r.Create(ctx, &have); err != nil {
			return err
		}
	case have.Data["phase"] != want:
		have.Data = map[string]string{"phase": want}
		if err := r.Update(ctx, &have); err != nil {
			return err
		}
	default:
		return nil
	}
	var read corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKeyFromObject(p), &read); err != nil {
		return fmt.Errorf("after it was written: %w", err)
	}
	if read.Data["phase"] != want {
		return errors.New("the write is not read")
	}
	return nil
}
