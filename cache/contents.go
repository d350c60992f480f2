package cache

import (
	"context"
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/features"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// contents is what a store of this package is without its keys: objects, their
// indexes and their version, all in a [memory.Store]. It has what client-go's
// ThreadSafeStore and Indexer say in the same words; each adds its own way to
// name an object.
//
// An object that an index function fails for, by error or panic, is stored and
// left out of that index, and the failure goes to the error handlers of
// utilruntime. client-go panics instead, which takes the whole process down for
// one object.
type contents struct {
	objects *memory.Store[any]
	gauge   *versionGauge
}

func newContents(indexers Indexers) contents {
	c := contents{objects: memory.New[any]()}
	for name, function := range indexers {
		if err := c.AddIndexers(Indexers{name: function}); err != nil {
			utilruntime.HandleError(err)
		}
	}
	return c
}

// memory is the store below, for a replica that keeps it while others read it
// through the Indexer interface. A caller that writes to it calls publish afterwards.
func (c *contents) memory() *memory.Store[any] { return c.objects }

// publish shows the store's version in its metric.
func (c *contents) publish() {
	c.gauge.show(c.objects)
}

// write makes the changes one step. newest is the object that they end with; if
// it has a version, that becomes the store's, even an empty one.
func (c *contents) write(newest any, changes func(*memory.Writer[any])) {
	accessor, noVersion := meta.Accessor(newest)
	err := c.objects.Batch(func(w *memory.Writer[any]) {
		changes(w)
		if noVersion == nil {
			w.SetVersion(tarn.Version(accessor.GetResourceVersion()))
		}
	})
	if noVersion == nil {
		c.publish()
	}
	reportUnindexed(err)
}

// put is write for one object, which is by far the most common.
func (c *contents) put(key string, obj any) {
	accessor, noVersion := meta.Accessor(obj)
	if noVersion != nil {
		reportUnindexed(c.objects.Put(tarn.Key(key), obj))
		return
	}
	err := c.objects.PutAt(tarn.Key(key), obj, tarn.Version(accessor.GetResourceVersion()))
	c.publish()
	reportUnindexed(err)
}

// remove removes the object under key. final is its last state, which has the
// version; nil if it is unknown.
func (c *contents) remove(key string, final any) {
	c.write(final, func(w *memory.Writer[any]) { w.Remove(tarn.Key(key)) })
}

func (c *contents) transact(txns []ThreadSafeStoreTransaction) {
	if len(txns) == 0 {
		return
	}
	c.write(txns[len(txns)-1].Object, func(w *memory.Writer[any]) {
		for i := range txns {
			switch txn := &txns[i]; txn.Type {
			case TransactionTypeAdd, TransactionTypeUpdate:
				w.Put(tarn.Key(txn.Key), txn.Object)
			case TransactionTypeDelete:
				w.Remove(tarn.Key(txn.Key))
			}
		}
	})
}

// replace makes objects the whole content. size is their number.
func (c *contents) replace(size int, objects iter.Seq2[tarn.Key, any], resourceVersion string) {
	err := c.objects.ReplaceAll(size, objects, tarn.At(tarn.Version(resourceVersion)))
	c.publish()
	reportUnindexed(err)
}

func (c *contents) Bookmark(rv string) {
	c.objects.SetVersion(tarn.Version(rv))
	c.publish()
}

// LastStoreSyncResourceVersion is the version of the store's content. It is empty
// while the AtomicFIFO feature is off, because then the writes need not come in the
// order of their versions.
func (c *contents) LastStoreSyncResourceVersion() string {
	if !features.FeatureGates().Enabled(features.AtomicFIFO) {
		return ""
	}
	return string(c.objects.Version())
}

func (c *contents) List() []any { return c.objects.List() }

func (c *contents) ListKeys() []string { return plain(c.objects.Keys()) }

// Resync does nothing: this store has no consumer.
func (c *contents) Resync() error { return nil }

func (c *contents) Index(indexName string, obj any) ([]any, error) {
	return c.objects.Index(indexName, obj)
}

func (c *contents) ByIndex(indexName, indexedValue string) ([]any, error) {
	return c.objects.ByIndex(indexName, indexedValue)
}

// IndexKeys gives the keys sorted.
func (c *contents) IndexKeys(indexName, indexedValue string) ([]string, error) {
	keys, err := c.objects.IndexKeys(indexName, indexedValue)
	if err != nil {
		return nil, err
	}
	return plain(keys), nil
}

// ListIndexFuncValues gives no values for an index that does not exist.
func (c *contents) ListIndexFuncValues(indexName string) []string {
	values, err := c.objects.IndexValues(indexName)
	if err != nil {
		return []string{}
	}
	return values
}

// GetIndexers gives the functions in a map of the caller's own, which stays
// readable while more indexers are added.
func (c *contents) GetIndexers() Indexers {
	functions := c.objects.IndexFuncs()
	indexers := make(Indexers, len(functions))
	for name, function := range functions {
		indexers[name] = function
	}
	return indexers
}

func (c *contents) AddIndexers(newIndexers Indexers) error {
	functions := make(map[string]func(any) ([]string, error), len(newIndexers))
	for name, function := range newIndexers {
		functions[name] = function
	}
	err := c.objects.AddIndexes(functions)
	if _, added := errors.AsType[tarn.ObjectErrors](err); added {
		reportUnindexed(err)
		return nil
	}
	return err
}

func plain(keys []tarn.Key) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = string(key)
	}
	return out
}

// unindexedShown is how many objects of one write are reported each by its own
// error. The handlers wait a millisecond for each, so a bad function over a full
// store would otherwise stall its writer for minutes.
const unindexedShown = 10

// reportUnindexed passes objects that an index could not accept to the error
// handlers.
func reportUnindexed(err error) {
	bad, _ := errors.AsType[tarn.ObjectErrors](err)
	for i, b := range bad {
		if i == unindexedShown {
			utilruntime.HandleErrorWithContext(context.Background(), b.Err, "More objects are missing from an index", "objects", len(bad)-i)
			return
		}
		utilruntime.HandleErrorWithContext(context.Background(), b.Err, "An object is missing from an index", "key", string(b.Key))
	}
}
