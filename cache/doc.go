// Package cache stands in for k8s.io/client-go/tools/cache: change the import
// path, and informers, reflectors, stores and queues are this module's.
//
// It exports every name that client-go's package exports. Interfaces, data types,
// constants and error values are client-go's own, under the same names, so values
// pass freely between code that imports one package and code that imports the
// other. What stands behind the constructors is ours, except for the few names
// that are passed on as they are.
//
// The packages [github.com/tarnproject/tarn/cache/testing] and
// [github.com/tarnproject/tarn/cache/synctrack] do the same for client-go's
// packages of these names.
//
// # Ours
//
// Keys and names:
//
//	DeletionHandlingMetaNamespaceKeyFunc DeletionHandlingObjectToName
//	IndexFuncToKeyFuncAdapter MetaNamespaceIndexFunc MetaNamespaceKeyFunc
//	MetaObjectToName NamespacedNameAsObjectName NewObjectName ObjectToName
//	ParseObjectName SplitMetaNamespaceKey
//
// Stores, indexes and listers:
//
//	ExpirationCache ListAll ListAllByNamespace NewExpirationStore
//	NewFakeExpirationStore NewGenericLister NewIndexer NewStore NewTTLStore
//	NewThreadSafeStore NewUndeltaStore StoreOption TTLPolicy
//	ThreadSafeStoreOption TypedIndexerFuncToIndexerFunc TypedIndexersToIndexers
//	UndeltaStore WithStoreMetrics WithThreadSafeStoreMetrics WithTransformer
//
// Sources and reflectors:
//
//	DefaultWatchErrorHandler NewFilteredListWatchFromClient
//	NewListWatchFromClient NewNamedReflector
//	NewNamespaceKeyedIndexerAndReflector NewReflector NewReflectorWithOptions
//	NewRetryWithDeadline ToListWatcherWithWatchListSemantics
//	ToListerWatcherWithContext ToListerWithContext ToWatcherWithContext
//
// Queues:
//
//	DeltaFIFO NewDeltaFIFO NewDeltaFIFOWithOptions NewRealFIFO
//	NewRealFIFOWithOptions RealFIFO
//
// Informers:
//
//	New NewCacheMutationDetector NewIndexerInformer NewInformer
//	NewInformerWithOptions NewSharedIndexInformer
//	NewSharedIndexInformerWithOptions NewSharedInformer
//	NewTransformingIndexerInformer NewTransformingInformer
//	NewTypedSharedIndexInformer SetInformerMetricsProvider
//	SetReflectorMetricsProvider ShutDownEventHandler
//
// Waiting:
//
//	IsDone WaitFor WaitForCacheSync WaitForNamedCacheSync
//	WaitForNamedCacheSyncWithContext
//
// # Forwarded
//
// These functions are client-go's, passed on: nothing was found to be improved,
// or they cannot be implemented elsewhere.
//
//	NewFIFO NewHeap NewInformerName NewIntegerResourceVersionMutationCache
//	NewIntegerResourceVersionMutationCacheWithOptions
//	ResetInformerNamesForTesting
//
// # Additions
//
// These names are not in client-go:
//
//	DetectMutations FieldChange Keep MovedHandler MutationReport NewMutationDetector
//	NewSharedIndexInformerFromSource ObjectTraits ReplicaOf ShareStructure SharingSource
package cache
