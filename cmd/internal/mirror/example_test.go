package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/memory/query"
	"github.com/tarnproject/tarn/sqlite"
)

// A mirror that is on disk too answers SQL, and so does its directory when it has
// ended.
func Example_disk() {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}); err != nil {
		fmt.Println(err)
		return
	}
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(folder, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	catalog, err := mirror.Discover(ctx, server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	maps, err := catalog.Find("configmaps")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := mirror.Start(ctx, server.Config(), []mirror.Resource{maps}, mirror.Options{Disk: &mirror.Disk{DB: db}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.WaitSynced(ctx), db.Flush())
	found, err := m.SQL(ctx, "SELECT namespace, name FROM configmaps", sqlite.Limits{})
	fmt.Println(found.Rows, err)
	_, err = m.SQL(ctx, "DELETE FROM configmaps", sqlite.Limits{})
	fmt.Println(errors.Is(err, sqlite.ErrNotReading))
	cancel()
	<-m.Done()
	fmt.Println(db.Close())

	d, err := mirror.OpenDirectory(context.Background(), folder, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	for _, r := range d.Catalog().All() {
		fmt.Println(r.Name())
	}
	// Output:
	// <nil> <nil>
	// [[shop front]] <nil>
	// true
	// <nil>
	// configmaps
}

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
	page, err := maps.Store().Select(query.Where().Labels("tier=back"))
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
