package mirror_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/mirror"
)

// A mirror of two resources, asked for by the names that people use.
func Example() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	for _, name := range []string{"front", "back"} {
		err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"tier": name}}})
		if err != nil {
			fmt.Println(err)
			return
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	catalog, err := mirror.Discover(ctx, server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	var resources []mirror.Resource
	for _, name := range []string{"cm", "ns"} {
		r, err := catalog.Find(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		resources = append(resources, r)
	}
	m, err := mirror.Start(ctx, server.Config(), resources, mirror.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.WaitSynced(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, table := range m.Tables() {
		fmt.Println(table.Resource().Name(), table.Status().Health.Synced)
	}
	maps, _ := m.Table("configmaps")
	page, err := maps.Store().Select(memory.Where().Labels("tier=back"))
	fmt.Println(page.Keys, err)

	cancel()
	<-m.Done()
	// Output:
	// configmaps true
	// namespaces true
	// [shop/back] <nil>
}

func ExampleCatalog_Find() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	catalog, err := mirror.Discover(context.Background(), server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"po", "Deployment", "events.events.k8s.io", "deploments"} {
		r, err := catalog.Find(name)
		if unknown, ok := errors.AsType[*mirror.UnknownResource](err); ok {
			fmt.Println(unknown.Name, "is perhaps", unknown.Nearest)
			continue
		}
		fmt.Println(name, "is", r.Name())
	}
	// Output:
	// po is pods
	// Deployment is deployments.apps
	// events.events.k8s.io is events.events.k8s.io
	// deploments is perhaps [deployments.apps]
}
