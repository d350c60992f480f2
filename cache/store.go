package cache

import (
	"fmt"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// indexer is the store that reads the keys from its objects.
type indexer struct {
	contents
	keyOf     KeyFunc
	transform TransformFunc // nil leaves objects as they are
	// replica fills the store if it is an informer's, and informer is that one if
	// it is shared; nil otherwise.
	replica  atomic.Pointer[tarn.Replica[any]]
	informer *informer
	removed  removed
}

var (
	_ Indexer          = (*indexer)(nil)
	_ TransactionStore = (*indexer)(nil)
)

// StoreOption sets up what [NewStore] and [NewIndexer] make.
type StoreOption func(*indexer)

// WithTransformer stores what transformer makes of each object. Keys are read
// from the object as it came.
func WithTransformer(transformer TransformFunc) StoreOption {
	return func(x *indexer) { x.transform = transformer }
}

// WithStoreMetrics shows the store's version in a metric, of the provider given
// to [SetInformerMetricsProvider] if metrics is nil.
func WithStoreMetrics(identifier InformerNameAndResource, metrics InformerMetricsProvider) StoreOption {
	return func(x *indexer) { x.gauge = newVersionGauge(identifier, metrics) }
}

// NewStore makes an empty store. What it returns is also a [TransactionStore].
func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return newIndexer(keyFunc, nil, opts)
}

// NewIndexer makes an empty store with these indexes. What it returns is also a
// [TransactionStore].
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	return newIndexer(keyFunc, indexers, opts)
}

func newIndexer(keyFunc KeyFunc, indexers Indexers, opts []StoreOption) *indexer {
	x := &indexer{contents: newContents(indexers), keyOf: keyFunc}
	for _, opt := range opts {
		opt(x)
	}
	return x
}

// key reads the key of an object; its error is a [KeyError].
func (x *indexer) key(obj any) (string, error) {
	key, err := x.keyOf(obj)
	if err != nil {
		return "", KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// admit gives an object's key, and the object as it is to be stored.
func (x *indexer) admit(obj any) (key string, stored any, err error) {
	key, err = x.key(obj)
	if err != nil || x.transform == nil {
		return key, obj, err
	}
	stored, err = x.transform(obj)
	if err != nil {
		return "", nil, fmt.Errorf("transforming: %w", err)
	}
	return key, stored, nil
}

func (x *indexer) Add(obj any) error {
	key, stored, err := x.admit(obj)
	if err != nil {
		return err
	}
	x.put(key, stored)
	return nil
}

func (x *indexer) Update(obj any) error { return x.Add(obj) }

func (x *indexer) Delete(obj any) error {
	key, err := x.key(obj)
	if err != nil {
		return err
	}
	x.noteRemoved(tarn.Key(key))
	x.remove(key, obj)
	return nil
}

// noteRemoved records an object that the program is about to remove from the store of
// an informer.
func (x *indexer) noteRemoved(key tarn.Key) {
	if x.replica.Load() == nil {
		return
	}
	if held, ok := x.objects.Get(key); ok {
		x.removed.put(key, held)
	}
}

func (x *indexer) Get(obj any) (item any, exists bool, err error) {
	key, err := x.key(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

func (x *indexer) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = x.objects.Get(tarn.Key(key))
	return item, exists, nil
}

// Replace makes the list the whole content, or changes nothing if one of its
// objects has no key or cannot be transformed.
func (x *indexer) Replace(list []any, resourceVersion string) error {
	keys, objects := make([]tarn.Key, len(list)), make([]any, len(list))
	for i, obj := range list {
		key, stored, err := x.admit(obj)
		if err != nil {
			return err
		}
		keys[i], objects[i] = tarn.Key(key), stored
	}
	if x.replica.Load() != nil {
		for _, key := range x.objects.Keys() {
			x.noteRemoved(key)
		}
		x.removed.forget(keys)
	}
	x.replace(len(keys), func(yield func(tarn.Key, any) bool) {
		for i, key := range keys {
			if !yield(key, objects[i]) {
				return
			}
		}
	}, resourceVersion)
	return nil
}

// Transaction makes several writes in one step. It leaves out a write whose object has
// no key or cannot be transformed. The version becomes that of the last object.
func (x *indexer) Transaction(txns ...Transaction) *TransactionError {
	keyed := make([]ThreadSafeStoreTransaction, 0, len(txns))
	done := make([]int, 0, len(txns))
	var failed []error
	for i, txn := range txns {
		var err error
		var key string
		if txn.Type == TransactionTypeDelete {
			if key, err = x.key(txn.Object); err == nil {
				x.noteRemoved(tarn.Key(key))
			}
		} else {
			key, txn.Object, err = x.admit(txn.Object)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		keyed = append(keyed, ThreadSafeStoreTransaction{Transaction: txn, Key: key})
		done = append(done, i)
	}
	x.transact(keyed)
	if failed == nil {
		return nil
	}
	return &TransactionError{SuccessfulIndices: done, TotalTransactions: len(txns), Errors: failed}
}
