package informers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	stock "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/cache"
)

// Every collection of a clientset is decoded by package kube. No other test would notice a
// collection that is not: its objects arrive as well, for four times the CPU.
func TestClientsetIsReadForEveryCollection(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://lake:8080/deep/"})
	if err != nil {
		t.Fatal(err)
	}
	var read clientsets
	for resource, c := range known().byResource {
		if read.of(client, c) == nil {
			t.Errorf("%v is read through the clientset", resource)
		}
	}
}

// TestForResource asks both factories for every resource name that any
// collection has in every version of every group, so that what one knows and
// the other does not comes up, whichever it is.
func TestForResource(t *testing.T) {
	names := map[string]bool{"lakes": true, "": true, "Pods": true}
	for resource := range known().byResource {
		names[resource.Resource] = true
	}
	versions := append(scheme.Scheme.PrioritizedVersionsAllGroups(), schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersion{})

	theirs, ours := stock.NewSharedInformerFactory(nil, 0), NewSharedInformerFactory(nil, 0)
	accepted := 0
	for _, version := range versions {
		for name := range names {
			resource := version.WithResource(name)
			want, wantErr := theirs.ForResource(resource)
			got, gotErr := ours.ForResource(resource)
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("%v: error %v, client-go's: %v", resource, gotErr, wantErr)
				continue
			}
			if wantErr != nil {
				continue
			}
			accepted++
			_, wantErr = want.Lister().Get("absent")
			_, gotErr = got.Lister().Get("absent")
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("%v: the lister says %v, client-go's: %v", resource, gotErr, wantErr)
			}
		}
	}
	if all := resourcesInSource(t); accepted != all || accepted != len(table()) {
		t.Errorf("client-go knows %d resources, %d of them were asked for, the table has %d; run go generate", all, accepted, len(table()))
	}
}

// resourcesInSource counts the resources in client-go's ForResource.
func resourcesInSource(t *testing.T) int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(stockDir(t), "generic.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			count += len(c.List)
		}
		return true
	})
	return count
}

// TestEveryAccessorIsOurs walks the factory as its users do, by group, version
// and resource, and finds informers of package cache everywhere.
func TestEveryAccessorIsOurs(t *testing.T) {
	f := NewSharedInformerFactory(nil, 0).(*factory)
	accessors := 0
	for group := range results(reflect.ValueOf(f), reflect.TypeFor[SharedInformerFactory]()) {
		for version := range results(group, group.Type()) {
			for accessor := range results(version, version.Type()) {
				accessor.MethodByName("Lister").Call(nil)
				accessors++
			}
		}
	}
	if accessors != len(table()) || len(f.members) != len(table()) {
		t.Errorf("%d accessors made %d informers, the table has %d", accessors, len(f.members), len(table()))
	}
	for resource, c := range known().byResource {
		generic, err := f.ForResource(resource)
		if err != nil {
			t.Errorf("%v: %v", resource, err)
			continue
		}
		informer := generic.Informer()
		if informer != f.members[c.object].SharedIndexInformer {
			t.Errorf("%v: ForResource and the accessor have different informers", resource)
		}
		if pkg := reflect.TypeOf(informer).Elem().PkgPath(); pkg != "github.com/tarnproject/tarn/cache" {
			t.Errorf("%v: the informer is of package %s", resource, pkg)
		}
	}
}

// results yields what those methods of v that t has, take nothing and give one
// interface, give.
func results(v reflect.Value, t reflect.Type) func(func(reflect.Value) bool) {
	return func(yield func(reflect.Value) bool) {
		for m := range t.Methods() {
			if m.Type.NumIn() != 0 || m.Type.NumOut() != 1 || m.Type.Out(0).Kind() != reflect.Interface {
				continue
			}
			if !yield(v.MethodByName(m.Name).Call(nil)[0]) {
				return
			}
		}
	}
}

// TestUnknownType falls back to client-go's informer for a type that the table
// does not have, and only then.
func TestUnknownType(t *testing.T) {
	type lake struct{ runtime.Object }
	stocks := running{}
	build := func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return stocks }
	f := ours{NewSharedInformerFactory(nil, 0).(*factory)}
	if got := f.InformerFor(lake{}, build); got != stocks {
		t.Errorf("an unknown type got %T, wanted what client-go builds", got)
	}
	if got := f.InformerFor(&corev1.Pod{}, build); got == stocks {
		t.Error("a known type got what client-go builds")
	}
}
