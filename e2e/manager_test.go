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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tarnproject/tarn/ctrlcache"
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

// runManager has a manager label all pods. Its cache is controller-runtime's if newCache is
// nil.
func (s *testEnv) runManager(newCache cache.NewCacheFunc) {
	t := s.T
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(s.server.Config(AdminToken), ctrl.Options{
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

	err = eventually(t, 2*time.Minute, func() error {
		list, err := s.server.Admin().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "seen!=yes"})
		if err == nil && len(list.Items) > 0 {
			err = errUnmarked
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

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
