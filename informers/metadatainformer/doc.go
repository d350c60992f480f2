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
// factory. [NewFactoryForConfig] goes further: it needs no client, and reads the
// wire with package kube. Its informers survive a restart with [WithDisk].
package metadatainformer
