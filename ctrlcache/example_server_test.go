package ctrlcache_test

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tarnproject/tarn/apiserver"
)

// A controller-runtime manager is tested with a server of its own, where there
// would be envtest: give it the server's Config. In a test, t.Cleanup(api.Close)
// takes the place of the first defer.
func Example_server() {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()

	log.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(api.Config(), ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // more than one test
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		var found corev1.ConfigMap
		if err := manager.GetClient().Get(ctx, request.NamespacedName, &found); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		before := found.DeepCopy()
		metav1.SetMetaDataLabel(&found.ObjectMeta, "seen", "yes")
		return ctrl.Result{}, manager.GetClient().Patch(ctx, &found, client.MergeFrom(before))
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	defer func() { cancel(); <-ended }()

	// The scene is set, and the controller's answer to it watched for.
	if err := api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}); err != nil {
		fmt.Println(err)
		return
	}
	direct, err := client.NewWithWatch(api.Config(), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, err := direct.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"seen": "yes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Stop()
	event := <-stream.ResultChan()
	fmt.Println(event.Object.(*corev1.ConfigMap).Name, "was seen")
	// Output: settings was seen
}
