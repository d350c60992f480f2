package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/cache"
)

// The tests in this file make the same random calls to client-go's stores and to
// ours, and compare everything that can be observed after each call, as text.

type storeObject = *metav1.PartialObjectMetadata

func newStoreObject(namespace, name, version, tags string) storeObject {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, ResourceVersion: version,
		Annotations: map[string]string{"tags": tags},
	}}
}

// storeObjectTags is an index function with any number of values, also repeated
// ones, and none for what is not an object.
func storeObjectTags(obj any) ([]string, error) {
	o, ok := obj.(storeObject)
	if !ok {
		return nil, nil
	}
	if strings.Contains(o.Annotations["tags"], "!") {
		return nil, errors.New("cannot read the tags of " + o.Name)
	}
	return strings.Fields(o.Annotations["tags"]), nil
}

func storeObjectNamespace(obj any) ([]string, error) {
	if o, ok := obj.(storeObject); ok {
		return []string{o.Namespace}, nil
	}
	return []string{"none"}, nil
}

func storeObjectText(obj any) string {
	if o, ok := obj.(storeObject); ok {
		return fmt.Sprintf("%s/%s@%s[%s]", o.Namespace, o.Name, o.ResourceVersion, o.Annotations["tags"])
	}
	return fmt.Sprintf("%v", obj)
}

func storeObjectTexts(objs []any) string {
	if objs == nil {
		return "nil"
	}
	texts := []string{}
	for _, obj := range objs {
		texts = append(texts, storeObjectText(obj))
	}
	slices.Sort(texts)
	return fmt.Sprint(texts)
}

// gaugeLog is a metrics provider that writes down what the stores report.
type gaugeLog struct {
	upstream.InformerMetricsProvider
	seen []float64
}

func (g *gaugeLog) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return g
}
func (g *gaugeLog) Set(v float64) { g.seen = append(g.seen, v) }

// storeIdentity is a reserved identity, without which no metrics are made.
func storeIdentity(t interface {
	Fatal(...any)
	Cleanup(func())
}, name string) cache.InformerNameAndResource {
	n, err := upstream.NewInformerName(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Release)
	return n.WithResource(schema.GroupVersionResource{Version: "v1", Resource: "things"})
}

// indexedStore is what client-go's Indexer and ThreadSafeStore have in common.
type indexedStore interface {
	List() []any
	ListKeys() []string
	LastStoreSyncResourceVersion() string
	Bookmark(rv string)
	Index(indexName string, obj any) ([]any, error)
	IndexKeys(indexName, indexedValue string) ([]string, error)
	ListIndexFuncValues(indexName string) []string
	ByIndex(indexName, indexedValue string) ([]any, error)
	GetIndexers() upstream.Indexers
	AddIndexers(newIndexers upstream.Indexers) error
	Resync() error
}

func observeStore(s indexedStore, gauge *gaugeLog) string {
	var b strings.Builder
	fmt.Fprintln(&b, "list", storeObjectTexts(s.List()))
	fmt.Fprintln(&b, "keys", slices.Sorted(slices.Values(s.ListKeys())))
	fmt.Fprintln(&b, "version", s.LastStoreSyncResourceVersion(), gauge.seen)
	fmt.Fprintln(&b, "resync", s.Resync())
	names := []string{"nope"}
	for name := range s.GetIndexers() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := s.ListIndexFuncValues(name)
		slices.Sort(values)
		fmt.Fprintln(&b, "index", name, len(values), values, values == nil)
		for _, value := range append(values, "absent") {
			objects, err := s.ByIndex(name, value)
			keys, err2 := s.IndexKeys(name, value)
			fmt.Fprintln(&b, " ", value, storeObjectTexts(objects), err, keys, keys == nil, err2)
		}
		for _, probe := range []any{newStoreObject("ns1", "", "", "x y"), newStoreObject("", "", "", ""), newStoreObject("", "probe", "", "!"), "a string"} {
			objects, err := s.Index(name, probe)
			fmt.Fprintln(&b, " ", storeObjectText(probe), storeObjectTexts(objects), err)
		}
	}
	return b.String()
}

// storePair makes each call on both stores and compares the answers.
type storePair[S indexedStore] struct {
	theirs, ours         S
	theirGauge, ourGauge *gaugeLog
}

func (p storePair[S]) both(t *rapid.T, call func(s S) string) {
	t.Helper()
	theirs, ours := call(p.theirs), call(p.ours)
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Fatalf("answers differ (-client-go +ours):\n%s", diff)
	}
}

func (p storePair[S]) same(t *rapid.T) {
	t.Helper()
	theirs, ours := observeStore(p.theirs, p.theirGauge), observeStore(p.ours, p.ourGauge)
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Fatalf("stores differ (-client-go +ours):\n%s", diff)
	}
}

var (
	anyStoreVersion = rapid.SampledFrom([]string{"", "1", "2", "30", "400", "12345678901234567890", "x", "-5"})
	anyStoreObject  = rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
			return "not an object"
		}
		return newStoreObject(
			rapid.SampledFrom([]string{"", "ns1", "ns2"}).Draw(t, "namespace"),
			rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
			anyStoreVersion.Draw(t, "version"),
			rapid.SampledFrom([]string{"", "x", "y", "x y", "y z x", "x x"}).Draw(t, "tags"))
	})
	anyTransactionType = rapid.SampledFrom([]upstream.TransactionType{
		upstream.TransactionTypeAdd, upstream.TransactionTypeUpdate, upstream.TransactionTypeDelete, "Nonsense"})
)

// common are the calls that both kinds of store have.
func (p storePair[S]) common(more map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	more[""] = p.same
	more["bookmark"] = func(t *rapid.T) {
		rv := anyStoreVersion.Draw(t, "version")
		p.both(t, func(s S) string { s.Bookmark(rv); return "" })
	}
	more["add indexers"] = func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"tags", "namespace", "late"}), 0, 2).Draw(t, "names")
		p.both(t, func(s S) string {
			indexers := upstream.Indexers{}
			for _, name := range names {
				indexers[name] = storeObjectTags
			}
			return fmt.Sprint(s.AddIndexers(indexers))
		})
	}
	return more
}

func storeDifferentialIndexers() upstream.Indexers {
	return upstream.Indexers{"tags": storeObjectTags, "namespace": storeObjectNamespace}
}

func TestIndexerLikeClientGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// The keys' own errors are compared elsewhere: one key function for both.
		key := upstream.DeletionHandlingMetaNamespaceKeyFunc
		transformed := rapid.Bool().Draw(t, "transformed")
		stamp := func(obj any) (any, error) {
			o, ok := obj.(storeObject)
			if !ok || o.Name == "c" {
				return nil, errors.New("will not transform")
			}
			o = o.DeepCopy()
			o.Annotations["tags"] += " stamped"
			return o, nil
		}
		theirGauge, ourGauge := &gaugeLog{}, &gaugeLog{}
		theirOpts := []upstream.StoreOption{upstream.WithStoreMetrics(storeIdentity(t, "theirs"), theirGauge)}
		ourOpts := []cache.StoreOption{cache.WithStoreMetrics(storeIdentity(t, "ours"), ourGauge)}
		if transformed {
			theirOpts = append(theirOpts, upstream.WithTransformer(stamp))
			ourOpts = append(ourOpts, cache.WithTransformer(stamp))
		}
		p := storePair[cache.Indexer]{
			theirs:     upstream.NewIndexer(key, storeDifferentialIndexers(), theirOpts...),
			ours:       cache.NewIndexer(key, storeDifferentialIndexers(), ourOpts...),
			theirGauge: theirGauge, ourGauge: ourGauge,
		}
		one := func(call func(cache.Indexer, any) string) func(*rapid.T) {
			return func(t *rapid.T) {
				obj := anyStoreObject.Draw(t, "object")
				p.both(t, func(s cache.Indexer) string { return call(s, obj) })
			}
		}
		t.Repeat(p.common(map[string]func(*rapid.T){
			"add":    one(func(s cache.Indexer, obj any) string { return fmt.Sprint(s.Add(obj)) }),
			"update": one(func(s cache.Indexer, obj any) string { return fmt.Sprint(s.Update(obj)) }),
			"delete": one(func(s cache.Indexer, obj any) string { return fmt.Sprint(s.Delete(obj)) }),
			"delete by tombstone": one(func(s cache.Indexer, obj any) string {
				return fmt.Sprint(s.Delete(upstream.DeletedFinalStateUnknown{Key: "ns1/a", Obj: obj}))
			}),
			"get": one(func(s cache.Indexer, obj any) string {
				item, exists, err := s.Get(obj)
				byKey, existsByKey, err2 := s.GetByKey("ns1/a")
				return fmt.Sprint(storeObjectText(item), exists, err, storeObjectText(byKey), existsByKey, err2)
			}),
			"replace": func(t *rapid.T) {
				list := rapid.SliceOfN(anyStoreObject, 0, 5).Draw(t, "list")
				rv := anyStoreVersion.Draw(t, "version")
				p.both(t, func(s cache.Indexer) string { return fmt.Sprint(s.Replace(slices.Clone(list), rv)) })
			},
			"transaction": func(t *rapid.T) {
				if transformed {
					t.Skip() // ours transforms here too, see TestTransactionTransforms
				}
				var txns []upstream.Transaction
				for range rapid.IntRange(0, 4).Draw(t, "length") {
					txns = append(txns, upstream.Transaction{Object: anyStoreObject.Draw(t, "object"), Type: anyTransactionType.Draw(t, "type")})
				}
				p.both(t, func(s cache.Indexer) string {
					err := s.(upstream.TransactionStore).Transaction(txns...)
					if err == nil {
						return "nil"
					}
					return fmt.Sprint(err, err.SuccessfulIndices, err.SuccessfulIndices == nil, err.TotalTransactions)
				})
			},
		}))
	})
}

func TestThreadSafeStoreLikeClientGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		theirGauge, ourGauge := &gaugeLog{}, &gaugeLog{}
		p := storePair[cache.ThreadSafeStoreWithTransaction]{
			theirs: upstream.NewThreadSafeStore(storeDifferentialIndexers(), upstream.Indices{},
				upstream.WithThreadSafeStoreMetrics(storeIdentity(t, "theirs"), theirGauge)).(cache.ThreadSafeStoreWithTransaction),
			ours: cache.NewThreadSafeStore(storeDifferentialIndexers(), cache.Indices{},
				cache.WithThreadSafeStoreMetrics(storeIdentity(t, "ours"), ourGauge)).(cache.ThreadSafeStoreWithTransaction),
			theirGauge: theirGauge, ourGauge: ourGauge,
		}
		aKey := rapid.SampledFrom([]string{"", "a", "b", "c", "d"})
		one := func(call func(cache.ThreadSafeStoreWithTransaction, string, any)) func(*rapid.T) {
			return func(t *rapid.T) {
				key, obj := aKey.Draw(t, "key"), anyStoreObject.Draw(t, "object")
				p.both(t, func(s cache.ThreadSafeStoreWithTransaction) string {
					call(s, key, obj)
					item, exists := s.Get(key)
					return fmt.Sprint(storeObjectText(item), exists)
				})
			}
		}
		t.Repeat(p.common(map[string]func(*rapid.T){
			"add":    one(func(s cache.ThreadSafeStoreWithTransaction, key string, obj any) { s.Add(key, obj) }),
			"update": one(func(s cache.ThreadSafeStoreWithTransaction, key string, obj any) { s.Update(key, obj) }),
			"delete": one(func(s cache.ThreadSafeStoreWithTransaction, key string, _ any) { s.Delete(key) }),
			"delete with object": one(func(s cache.ThreadSafeStoreWithTransaction, key string, obj any) {
				s.DeleteWithObject(key, obj)
			}),
			"replace": func(t *rapid.T) {
				items := rapid.MapOfN(aKey, anyStoreObject, 0, 4).Draw(t, "items")
				rv := anyStoreVersion.Draw(t, "version")
				p.both(t, func(s cache.ThreadSafeStoreWithTransaction) string {
					given := map[string]any{}
					for key, obj := range items {
						given[key] = obj
					}
					s.Replace(given, rv)
					return ""
				})
			},
			"transaction": func(t *rapid.T) {
				var txns []upstream.ThreadSafeStoreTransaction
				for range rapid.IntRange(0, 4).Draw(t, "length") {
					txns = append(txns, upstream.ThreadSafeStoreTransaction{
						Transaction: upstream.Transaction{Object: anyStoreObject.Draw(t, "object"), Type: anyTransactionType.Draw(t, "type")},
						Key:         aKey.Draw(t, "key"),
					})
				}
				p.both(t, func(s cache.ThreadSafeStoreWithTransaction) string { s.Transaction(txns...); return "" })
			},
		}))
	})
}
