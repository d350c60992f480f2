package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/kube"
)

// A controller-runtime manager whose one changed line is its NewCache: its
// reconciler reads pods through the cache and writes a label to each.
func TestManager(t *testing.T) {
	onEach(t, 50, func(s *testEnv) { s.runManager(ctrlcache.NewCache) })
}

// Managers do not notice that they talk to a relay, with our cache and with their own.
func TestRelayManager(t *testing.T) {
	for name, newCache := range map[string]cache.NewCacheFunc{"ctrlcache": ctrlcache.NewCache, "controller-runtime": nil} {
		t.Run(name, func(t *testing.T) {
			onOne(t, 50, func(s *testEnv) {
				s.throughRelay(s.server.Config(AdminToken))
				s.runManager(newCache)
			})
		})
	}
}

// A manager continues at a second relay when the first one is killed: its cache asks for no
// list there, and its reconciler marks what changes then.
func TestRelayManagerFailover(t *testing.T) {
	for name, newCache := range map[string]cache.NewCacheFunc{"ctrlcache": ctrlcache.NewCache, "controller-runtime": nil} {
		t.Run(name, func(t *testing.T) {
			onOne(t, 20, func(s *testEnv) {
				first, second := startRelay(t, s.server.Config(AdminToken)), startRelay(t, s.server.Config(AdminToken))
				config, err := kube.Endpoints(first.Config(AdminToken), second.Config(AdminToken), s.server.Config(AdminToken))
				if err != nil {
					t.Fatal(err)
				}
				s.startManager(config, newCache)
				s.awaitMarked()
				if n := first.relay.Health().Total().Watches; n == 0 {
					t.Error("the manager does not watch at the first relay")
				}
				first.kill()
				pods := s.server.Admin().CoreV1().Pods(namespace)
				list, err := pods.List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, pod := range list.Items {
					if err := s.patch(pod.Name, `{"metadata":{"labels":{"seen":"no"}}}`); err != nil {
						t.Fatal(err)
					}
				}
				s.awaitMarked()
				of := second.relay.Health().Resources[0]
				if of.Watches == 0 || of.ServedBy["list"] > 0 {
					t.Errorf("the second relay has %d watches, and was asked for %v", of.Watches, of.ServedBy)
				}
			})
		})
	}
}

// startManager runs a manager that labels all pods, until the end of the test, and waits
// until its cache has synced. The cache is controller-runtime's if newCache is nil.
func (s *testEnv) startManager(to *rest.Config, newCache cache.NewCacheFunc) ctrl.Manager {
	t := s.T
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(to, ctrl.Options{
		NewCache:   newCache,
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	marked := &marker{manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).Complete(marked); err != nil {
		t.Fatal(err)
	}
	byNode := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	if err := manager.GetFieldIndexer().IndexField(t.Context(), &corev1.Pod{}, "spec.nodeName", byNode); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	within, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	if !manager.GetCache().WaitForCacheSync(within) {
		t.Fatal("the manager's cache did not sync")
	}
	return manager
}

// awaitMarked waits until a manager has labelled all pods.
func (s *testEnv) awaitMarked() {
	s.Helper()
	err := eventually(s.T, 2*time.Minute, func() error {
		list, err := s.server.Admin().CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "seen!=yes"})
		if err == nil && len(list.Items) > 0 {
			err = errUnmarked
		}
		return err
	})
	if err != nil {
		s.Error(err)
	}
}

// runManager has a manager label all pods, and reads through its client.
func (s *testEnv) runManager(newCache cache.NewCacheFunc) {
	t := s.T
	manager := s.startManager(s.server.Config(AdminToken), newCache)
	s.awaitMarked()

	// The index, and a selector that has none, which controller-runtime's cache refuses.
	var onNode, elsewhere corev1.PodList
	all := &corev1.PodList{}
	if err := manager.GetClient().List(t.Context(), all, client.InNamespace(namespace)); err != nil || len(all.Items) != 50 {
		t.Fatalf("%d pods of 50, %v", len(all.Items), err)
	}
	node := all.Items[0].Spec.NodeName
	if err := manager.GetClient().List(t.Context(), &onNode, client.InNamespace(namespace), client.MatchingFields{"spec.nodeName": node}); err != nil {
		t.Error(err)
	}
	if newCache == nil {
		return
	}
	if err := manager.GetClient().List(t.Context(), &elsewhere, client.InNamespace(namespace), fieldSelector("spec.nodeName!="+node)); err != nil {
		t.Error(err)
	}
	if len(onNode.Items) == 0 || len(onNode.Items)+len(elsewhere.Items) != 50 {
		t.Errorf("%d pods are on %s and %d elsewhere, of 50", len(onNode.Items), node, len(elsewhere.Items))
	}
}

var errUnmarked = errors.New("there are pods that the reconciler has not marked")

func fieldSelector(text string) client.ListOption {
	return client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie(text)}
}

// marker labels every pod that it sees in the stage's namespace.
type marker struct {
	client.Client
}

func (m *marker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := m.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if pod.Namespace != namespace || pod.Labels["seen"] == "yes" {
		return ctrl.Result{}, nil
	}
	before := pod.DeepCopy()
	pod.Labels["seen"] = "yes"
	return ctrl.Result{}, client.IgnoreNotFound(m.Patch(ctx, &pod, client.MergeFrom(before)))
}
