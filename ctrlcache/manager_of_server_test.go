package ctrlcache_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tarnproject/tarn/apiserver"
)

// counter gives every deployment a config map that it owns, and records in the
// status how many it has seen.
type counter struct{ client.Client }

const finalizer = "example.org/count"

func (c counter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, request.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !deployment.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(&deployment, finalizer)
		return ctrl.Result{}, c.Update(ctx, &deployment)
	}
	if controllerutil.AddFinalizer(&deployment, finalizer) {
		if err := c.Update(ctx, &deployment); err != nil {
			return ctrl.Result{}, err
		}
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: deployment.Name, Namespace: deployment.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, c.Client, owned, func() error {
		return controllerutil.SetControllerReference(&deployment, owned, c.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	deployment.Status.ObservedGeneration = deployment.Generation
	return ctrl.Result{}, c.Status().Update(ctx, &deployment)
}

func TestManagerOfControllerRuntime(t *testing.T) {
	log.SetLogger(logr.Discard())
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	manager, err := ctrl.NewManager(api.Config(), ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(counter{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	direct, err := client.New(api.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}}
	if err := direct.Create(ctx, deployment); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(deployment)
	await(t, "the status and what is owned", func() bool {
		var owned corev1.ConfigMap
		return direct.Get(ctx, key, deployment) == nil && deployment.Status.ObservedGeneration == 1 &&
			direct.Get(ctx, key, &owned) == nil && metav1.IsControlledBy(&owned, deployment)
	})
	if err := direct.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}}); err != nil {
		t.Fatal(err)
	}
	await(t, "what is owned to be made again", func() bool { return direct.Get(ctx, key, &corev1.ConfigMap{}) == nil })
	if err := direct.Delete(ctx, deployment); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", func() bool { return apierrors.IsNotFound(direct.Get(ctx, key, deployment)) })
}

// await waits for something that a controller does.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("waited in vain for %s", what)
	}
}
