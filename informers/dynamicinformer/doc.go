// Package dynamicinformer is client-go's k8s.io/client-go/dynamic/dynamicinformer
// with informers of package cache behind it.
//
// To use it, change the import path:
//
//	import "github.com/tarnproject/tarn/informers/dynamicinformer" // was k8s.io/client-go/dynamic/dynamicinformer
//
// All else stays: the interfaces are client-go's own. client-go's factory
// calls its own constructor, so this package has a factory of its own.
//
// The informers of client-go's own dynamic client send the requests of that client, and
// read the answers by themselves, with package kube, which decodes equal parts of objects
// once and on all cores. Any other client, such as a fake one, is called as client-go's
// informers call it.
//
// [NewFactoryForConfig] needs no client. Its informers survive a restart with [WithDisk].
package dynamicinformer
