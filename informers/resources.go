package informers

import (
	"context"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

//go:generate go run generate.go

// collection is a resource that a Kubernetes clientset can list and watch.
//
// The collections are a generated table. They could be found at run time by
// reflection over kubernetes.Interface, which is what the generator does, and no
// table would age; but a program that walks methods by reflection keeps every
// exported method of every type it links. The smallest program with a factory is
// 47 MB with the table and 82 MB with such a walk added to it; with client-go's
// factory it is 40 MB, and 46 MB once it calls ForResource (client-go v0.37.2,
// linux/amd64, not stripped). The compiler also checks a table, and its rows can
// be read.
//
// Where the table has aged behind a newer client-go, a type that it lacks gets
// client-go's informer by its accessor, and ForResource does not know it. A test
// compares it with client-go's factory.
type collection struct {
	resource schema.GroupVersionResource
	object   reflect.Type
	// clusterWide says that the collection has no namespaces.
	clusterWide bool
	in          func(client kubernetes.Interface, namespace string) Client[runtime.Object]
	// rest is the REST client that the client returned by in uses.
	rest func(client kubernetes.Interface) rest.Interface
}

// example returns a new, empty object of the collection.
func (c collection) example() runtime.Object {
	return reflect.New(c.object.Elem()).Interface().(runtime.Object)
}

// typedClient has the methods of a generated client from which the types of a
// collection are inferred: L, its list, and O, its object.
type typedClient[O, L runtime.Object] interface {
	Client[L]
	Get(ctx context.Context, name string, opts metav1.GetOptions) (O, error)
}

// groupVersion is the client of a group version.
type groupVersion interface{ RESTClient() rest.Interface }

// namespaced makes a row of the table from two method expressions: that of the
// clientset which leads to a group version V, and that of V which leads to the
// client T of one namespace.
func namespaced[V groupVersion, T typedClient[O, L], O, L runtime.Object](group, version, resource string, at func(kubernetes.Interface) V, client func(V, string) T) collection {
	return collection{
		resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		object:   reflect.TypeFor[O](),
		in: func(c kubernetes.Interface, namespace string) Client[runtime.Object] {
			return untyped[L]{client(at(c), namespace)}
		},
		rest: func(c kubernetes.Interface) rest.Interface { return at(c).RESTClient() },
	}
}

// clusterWide is namespaced for collections that have no namespaces.
func clusterWide[V groupVersion, T typedClient[O, L], O, L runtime.Object](group, version, resource string, at func(kubernetes.Interface) V, client func(V) T) collection {
	c := namespaced(group, version, resource, at, func(v V, _ string) T { return client(v) })
	c.clusterWide = true
	return c
}

// catalogue finds collections by what the callers of a factory know.
type catalogue struct {
	byType     map[reflect.Type]collection
	byResource map[schema.GroupVersionResource]collection
}

// known is the catalogue of the table. It is made when first needed, so that a
// program which only links this package does not pay for it.
var known = sync.OnceValue(func() catalogue {
	rows := table()
	c := catalogue{
		byType:     make(map[reflect.Type]collection, len(rows)),
		byResource: make(map[schema.GroupVersionResource]collection, len(rows)),
	}
	for _, row := range rows {
		c.byType[row.object] = row
		c.byResource[row.resource] = row
	}
	return c
})
