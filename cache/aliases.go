package cache

import (
	upstream "k8s.io/client-go/tools/cache"
)

// The interfaces and data types of this package are client-go's own, under the
// same names: a store, handler or key error made here can be given to code that
// imports client-go, and the other way round. They are grouped by what they are
// about.

// Keys and names.
type (
	ExplicitKey = upstream.ExplicitKey
	KeyError    = upstream.KeyError
	KeyFunc     = upstream.KeyFunc
	ObjectName  = upstream.ObjectName
)

// Stores and their transactions.
type (
	FakeCustomStore                = upstream.FakeCustomStore
	KeyGetter                      = upstream.KeyGetter
	KeyLister                      = upstream.KeyLister
	KeyListerGetter                = upstream.KeyListerGetter
	Store                          = upstream.Store
	ThreadSafeStore                = upstream.ThreadSafeStore
	ThreadSafeStoreTransaction     = upstream.ThreadSafeStoreTransaction
	ThreadSafeStoreWithTransaction = upstream.ThreadSafeStoreWithTransaction
	Transaction                    = upstream.Transaction
	TransactionError               = upstream.TransactionError
	TransactionStore               = upstream.TransactionStore
	TransactionType                = upstream.TransactionType
	TransformFunc                  = upstream.TransformFunc
	TransformingStore              = upstream.TransformingStore
)

// What a [Transaction] does.
const (
	TransactionTypeAdd    = upstream.TransactionTypeAdd
	TransactionTypeUpdate = upstream.TransactionTypeUpdate
	TransactionTypeDelete = upstream.TransactionTypeDelete
)

// Indexes.
type (
	IndexFunc              = upstream.IndexFunc
	Indexer                = upstream.Indexer
	Indexers               = upstream.Indexers
	Indices                = upstream.Indices
	AppendFunc             = upstream.AppendFunc
	GenericLister          = upstream.GenericLister
	GenericNamespaceLister = upstream.GenericNamespaceLister
)

// NamespaceIndex is the name under which listers expect the index by namespace.
const NamespaceIndex = upstream.NamespaceIndex

// Expiring stores. [TTLPolicy] and [ExpirationCache] are this package's own.
type (
	ExpirationPolicy     = upstream.ExpirationPolicy
	FakeExpirationPolicy = upstream.FakeExpirationPolicy
	TimestampedEntry     = upstream.TimestampedEntry
)

// Event handlers.
type (
	DeletedFinalStateUnknown          = upstream.DeletedFinalStateUnknown
	FilteringResourceEventHandler     = upstream.FilteringResourceEventHandler
	ResourceEventHandler              = upstream.ResourceEventHandler
	ResourceEventHandlerDetailedFuncs = upstream.ResourceEventHandlerDetailedFuncs
	ResourceEventHandlerFuncs         = upstream.ResourceEventHandlerFuncs
	ResourceEventHandlerRegistration  = upstream.ResourceEventHandlerRegistration
)
