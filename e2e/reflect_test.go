package e2e

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// Replicas of every form, made by one call each: typed, of two namespaces,
// unstructured, and metadata alone. After a churn each shows what the server has.
func TestReflect(t *testing.T) { onEach(t, 50, reflects) }

func reflects(s *testEnv) {
	t := s.T
	s.server.Namespace("other")
	config := s.server.Config(AdminToken)
	pods := corev1.SchemeGroupVersion.WithResource("pods")

	typed := reflected(t, config, kube.Reflect[*corev1.Pod], kube.Namespace(namespace), kube.DropManagedFields())
	both := reflected(t, config, kube.Reflect[*corev1.Pod], kube.Namespaces(namespace, "other"))
	loose := reflected(t, config, func(ctx context.Context, c *rest.Config, opts ...kube.Option) (*tarn.Replica[*unstructured.Unstructured], error) {
		return kube.ReflectResource(ctx, c, pods, opts...)
	}, kube.Namespace(namespace))
	heads := reflected(t, config, func(ctx context.Context, c *rest.Config, opts ...kube.Option) (*tarn.Replica[*metav1.PartialObjectMetadata], error) {
		return kube.ReflectMetadata(ctx, c, pods, opts...)
	}, kube.Namespace(namespace))

	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 500)
	s.settle(churn)
	written, err := s.server.Admin().CoreV1().Pods("other").Create(t.Context(), barePod("mine"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), promptly)
	defer cancel()
	if err := both.WaitForKey(ctx, "other/mine", tarn.Version(written.ResourceVersion)); err != nil {
		t.Error(err)
	}
	if _, ok := both.Get("other/mine"); !ok {
		t.Error("a write that was waited for is not there")
	}

	s.equals("typed", contentOf(typed))
	s.equals("two namespaces", contentOf(both))
	s.equals("unstructured", contentOf(loose))
	s.equals("metadata", contentOf(heads))

	for key, p := range typed.All() {
		if p.ManagedFields != nil {
			t.Errorf("%s: has managed fields, which were to be dropped", key)
			break
		}
		if reflect.DeepEqual(p.Spec, corev1.PodSpec{}) {
			t.Errorf("%s: has no spec", key)
		}
	}
	for key, u := range loose.All() {
		if u.GetKind() != "Pod" || u.GetAPIVersion() != "v1" {
			t.Errorf("%s: is a %s %s", key, u.GetAPIVersion(), u.GetKind())
			break
		}
	}
}

// reflected starts a replica, waits for it, and ends it with the test.
func reflected[T any](t *testing.T, config *rest.Config, reflect func(context.Context, *rest.Config, ...kube.Option) (*tarn.Replica[T], error), opts ...kube.Option) *tarn.Replica[T] {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	replica, err := reflect(ctx, config, opts...)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-replica.Done()
	})
	within, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	if err := replica.WaitSynced(within); err != nil {
		t.Fatal(err)
	}
	return replica
}

// contentOf reads the part of a replica that is in the stage's namespace.
func contentOf[T metav1.Object](replica *tarn.Replica[T]) func() map[string]metav1.Object {
	return func() map[string]metav1.Object {
		all := map[string]metav1.Object{}
		for key, object := range replica.All() {
			if object.GetNamespace() == namespace {
				all[string(key)] = object
			}
		}
		return all
	}
}

// equals waits until a content has the same states as the server.
func (s *testEnv) equals(name string, content func() map[string]metav1.Object) {
	s.Helper()
	err := eventually(s.T, promptly, func() error {
		want, err := truthOfPods(s.server.Admin(), selection{namespace: namespace})(s.Context())
		if err != nil {
			return err
		}
		if found := differences(want, content(), func(a, b metav1.Object) bool { return describe(a) == describe(b) }); len(found) > 0 {
			return errors.New(strings.Join(found, "\n\t"))
		}
		return nil
	})
	if err != nil {
		s.Errorf("%s: %v", name, err)
	}
}
