// Package informers is client-go's k8s.io/client-go/informers with informers of
// package cache behind it.
//
// To use it, change the import path:
//
//	import "github.com/tarnproject/tarn/informers" // was k8s.io/client-go/informers
//
// All else stays: [SharedInformerFactory] and [GenericInformer] are client-go's
// own types, so factories pass freely between code that knows this package and
// code that does not, and the typed packages below client-go's informers
// (informers/core/v1 and so on) and its listers are used as they are.
//
// The typed packages would build client-go's informers, for they call its
// constructor by name. The factory therefore gives them a view of itself that
// ignores what they build and supplies an informer of package cache for the same
// collection, with the same requests, indexes and identity. Only an informer that a
// caller passes to InformerFor, as kube-scheduler does for its pods, is used
// unchanged: a caller that passes a constructor wants its informer.
//
// What client-go's typed accessors return is wrapped by client-go. InformerFor
// and ForResource return the informer itself, so that it can be asked for
// whatever package cache adds to it.
//
// Factories generated for custom resources are another program's code and stay
// unchanged. [For] makes the function with which they take an informer of package
// cache, one line for each resource.
//
// The informers of a factory with client-go's own clientset send the requests of that
// clientset, and read the answers by themselves: with package kube, as they arrive, on all
// cores, and equal parts of objects become one. Any other client, such as a fake one, is
// called as client-go's factory calls it.
//
// [NewSharedInformerFactoryForConfig] needs no clientset. With [WithDisk] its informers survive
// a restart: the next process has their objects at once, and follows the server from there
// without a list.
//
// Nothing here lists, watches or stores: this package only puts together what
// client-go's packages and packages cache and kube provide.
package informers
