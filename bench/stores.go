package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/memory"
)

// store is what the contenders of store trials are put through. Reads go through
// what was found, as a caller would, and count it.
type store interface {
	update(key string, pod *corev1.Pod)
	get(key string) bool
	// each reads all objects, in the way that the contender's users have for it.
	each() int
	byIndex(index, value string) int
	// replacing prepares a new content; the function that it returns puts it in.
	replacing(keys []string, pods []*corev1.Pod) func()
}

// indexFuncs are those of stores with one, two or three indexes.
var indexFuncs = []struct {
	name string
	of   func(*corev1.Pod) []string
}{
	{"namespace", func(p *corev1.Pod) []string { return []string{p.Namespace} }},
	{"node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }},
	{"phase", func(p *corev1.Pod) []string { return []string{string(p.Status.Phase)} }},
}

// threadSafe is a store by client-go's interface, theirs or ours.
type threadSafe struct{ upstream.ThreadSafeStore }

func newThreadSafe(create func(upstream.Indexers) upstream.ThreadSafeStore) func(indexes int) store {
	return func(indexes int) store {
		indexers := upstream.Indexers{}
		for _, x := range indexFuncs[:indexes] {
			indexers[x.name] = func(o any) ([]string, error) { return x.of(o.(*corev1.Pod)), nil }
		}
		return threadSafe{create(indexers)}
	}
}

func (s threadSafe) update(key string, pod *corev1.Pod) { s.Update(key, pod) }

func (s threadSafe) get(key string) bool {
	_, ok := s.Get(key)
	return ok
}

func (s threadSafe) each() int { return count(s.List()) }

func (s threadSafe) byIndex(index, value string) int {
	found, err := s.ByIndex(index, value)
	if err != nil {
		panic(err) // the trial made the index
	}
	return count(found)
}

func count(objects []any) int {
	n := 0
	for _, o := range objects {
		if o != nil {
			n++
		}
	}
	return n
}

func (s threadSafe) replacing(keys []string, pods []*corev1.Pod) func() {
	content := make(map[string]any, len(keys))
	for i, key := range keys {
		content[key] = pods[i]
	}
	return func() { s.Replace(content, "2") }
}

// typed is our store as replicas have it, read by its iterators.
type typed struct{ *memory.Store[*corev1.Pod] }

func newTyped(indexes int) store {
	s := memory.New[*corev1.Pod]()
	for _, x := range indexFuncs[:indexes] {
		err := s.AddIndex(x.name, memory.IndexFunc(func(p *corev1.Pod) ([]string, error) { return x.of(p), nil }))
		if err != nil {
			panic(err) // the names differ
		}
	}
	return typed{s}
}

func (s typed) update(key string, pod *corev1.Pod) {
	_ = s.PutAt(tarn.Key(key), pod, tarn.Version(pod.ResourceVersion)) // every index takes it
}

func (s typed) get(key string) bool {
	_, ok := s.Get(tarn.Key(key))
	return ok
}

func (s typed) each() int {
	n := 0
	for _, pod := range s.All() {
		if pod != nil {
			n++
		}
	}
	return n
}

func (s typed) byIndex(index, value string) int {
	found, err := s.Lookup(index, value)
	if err != nil {
		panic(err)
	}
	n := 0
	for _, pod := range found {
		if pod != nil {
			n++
		}
	}
	return n
}

func (s typed) replacing(keys []string, pods []*corev1.Pod) func() {
	items := make([]tarn.Item[*corev1.Pod], len(keys))
	for i, key := range keys {
		items[i] = tarn.Item[*corev1.Pod]{Meta: tarn.Meta{Key: tarn.Key(key)}, Object: pods[i]}
	}
	return func() { _ = s.Replace(items, tarn.At("2")) }
}

const (
	theirStore = "client-go"
	ourDropIn  = "tarn cache"
	ourStore   = "tarn memory"
)

var (
	newClientGo = newThreadSafe(func(x upstream.Indexers) upstream.ThreadSafeStore {
		return upstream.NewThreadSafeStore(x, upstream.Indices{})
	})
	newDropIn = newThreadSafe(func(x upstream.Indexers) upstream.ThreadSafeStore {
		return cache.NewThreadSafeStore(x, cache.Indices{})
	})
)

// storeRunners has every contender run the same body; that which the others are
// compared with runs twice.
func storeRunners(body func(m *meter, create func(indexes int) store) error) []runner {
	run := func(create func(int) store) func(context.Context, *meter) error {
		return func(_ context.Context, m *meter) error { return body(m, create) }
	}
	theirs, ours := run(newClientGo), run(newDropIn)
	return []runner{
		{theirStore, "", theirs}, {again(theirStore), theirStore, theirs},
		{ourDropIn, theirStore, ours}, {ourStore, theirStore, run(newTyped)},
	}
}

// perNamespace is how many pods share a namespace, and with it an index value.
const perNamespace = 1_000

// storePods makes pods in random order, with their keys: a thousand in a
// namespace, a hundred on a node.
func storePods(n int) (keys []string, pods []*corev1.Pod) {
	for i := range n {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceOf(i), Name: fmt.Sprintf("deployment-%05d-7d9f8c6b5d-%05d", i/10, i), ResourceVersion: "1",
		}}
		pod.Spec.NodeName = fmt.Sprintf("node-%04d", i%max(1, n/100))
		pod.Status.Phase = []corev1.PodPhase{"Pending", "Running", "Failed"}[i%3]
		pods = append(pods, pod)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, pod := range pods {
		keys = append(keys, keyOf(pod))
	}
	return keys, pods
}

func namespaceOf(i int) string { return fmt.Sprintf("namespace-%03d", i/perNamespace) }

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// filled makes a store with these pods.
func filled(create func(int) store, indexes int, keys []string, pods []*corev1.Pod) store {
	s := create(indexes)
	for i, key := range keys {
		s.update(key, pods[i])
	}
	return s
}
