// Package metadatainformer is client-go's
// k8s.io/client-go/metadata/metadatainformer with informers of package cache
// behind it: they hold the metadata of objects and nothing else.
//
// To use it, change the import path:
//
//	import "github.com/tarnproject/tarn/informers/metadatainformer" // was k8s.io/client-go/metadata/metadatainformer
//
// All else stays: the interfaces are client-go's own, except for
// [SharedInformerOption]: client-go's type of that name takes its private
// factory. The informers of client-go's own metadata client send the requests of that
// client, and read the answers by themselves, with package kube. [NewFactoryForConfig]
// needs no client. Its informers survive a restart with [WithDisk].
package metadatainformer
