// Package metadatainformer is client-go's
// k8s.io/client-go/metadata/metadatainformer with informers of package cache
// behind it: they hold the metadata of objects and nothing else.
//
// To use it, change the import path:
//
//	import "github.com/tarnproject/tarn/informers/metadatainformer" // was k8s.io/client-go/metadata/metadatainformer
//
// All else stays: the interfaces are client-go's own, but for
// [SharedInformerOption], whose namesake is a function of client-go's private
// factory. The informers of client-go's own metadata client send the requests of that
// client, and read the answers by themselves, with package kube. [NewFactoryForConfig]
// needs no client. Its informers survive a restart with [WithDisk].
package metadatainformer
