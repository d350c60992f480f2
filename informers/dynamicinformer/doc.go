// Package dynamicinformer is client-go's k8s.io/client-go/dynamic/dynamicinformer
// with informers of package cache behind it.
//
// To use it, change the import path:
//
//	import "github.com/tarnproject/tarn/informers/dynamicinformer" // was k8s.io/client-go/dynamic/dynamicinformer
//
// All else stays: the interfaces are client-go's own. client-go's factory calls
// its constructor by name, so that only another factory can give other informers.
//
// [NewFactoryForConfig] goes further: it needs no client, and reads the wire with
// package kube, which decodes equal parts of objects once and on all cores. Its
// informers survive a restart with [WithDisk].
package dynamicinformer
