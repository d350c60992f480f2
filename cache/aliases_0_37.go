//go:build !tarn_client_go_0_36

package cache

import (
	upstream "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// This file and typed.go hold the names that client-go 0.37 has and 0.36 has not. A
// program that is built with an older client-go leaves them out by the tag
// tarn_client_go_0_36; docs/versions.md says more.

// Indexes that know the type of their objects.
type (
	TypedIndexFunc[T any] = upstream.TypedIndexFunc[T]
	TypedIndexer[T any]   = upstream.TypedIndexer[T]
	TypedIndexers[T any]  = upstream.TypedIndexers[T]
)

// Event handlers that know the type of their objects. [Object] is a constraint,
// which Go allows an alias for as well.
type (
	Object                                           = upstream.Object
	DeletedObject[T Object]                          = upstream.DeletedObject[T]
	TypedFilteringResourceEventHandler[T Object]     = upstream.TypedFilteringResourceEventHandler[T]
	TypedResourceEventHandler[T Object]              = upstream.TypedResourceEventHandler[T]
	TypedResourceEventHandlerDetailedFuncs[T Object] = upstream.TypedResourceEventHandlerDetailedFuncs[T]
	TypedResourceEventHandlerFuncs[T Object]         = upstream.TypedResourceEventHandlerFuncs[T]
	TypedSharedIndexInformer[T Object]               = upstream.TypedSharedIndexInformer[T]
)

// MutationCacheOptions are the settings of a [MutationCache].
type MutationCacheOptions = upstream.MutationCacheOptions

// NewIntegerResourceVersionMutationCacheWithOptions is
// [NewIntegerResourceVersionMutationCache] with its settings in a struct.
func NewIntegerResourceVersionMutationCacheWithOptions(logger klog.Logger, backingCache Store, options MutationCacheOptions) MutationCache {
	return upstream.NewIntegerResourceVersionMutationCacheWithOptions(logger, backingCache, options)
}
