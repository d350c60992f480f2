package memory_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// The benchmarks below run the same work over client-go's store and over this one:
// go test -bench . -benchtime 1s ./memory. The trials of module bench measure what
// has a target, each contender in a process of its own.

type indexFunc = func(any) ([]string, error)

var benchIndexes = []struct {
	name     string
	function indexFunc
}{
	{"namespace", func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Namespace}, nil }},
	{"node", func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil }},
	{"phase", func(o any) ([]string, error) { return []string{string(o.(*corev1.Pod).Status.Phase)}, nil }},
}

// benchPods makes n pods in random order, on n/100 nodes in 50 namespaces.
func benchPods(n int) (keys []string, pods []any) {
	for i := range n {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("namespace-%02d", i%50), Name: fmt.Sprintf("deployment-%05d-7d9f8c6b5d-%05d", i/10, i), ResourceVersion: "1",
		}}
		pod.Spec.NodeName = fmt.Sprintf("node-%04d", i%max(1, n/100))
		pod.Status.Phase = []corev1.PodPhase{"Pending", "Running", "Failed"}[i%3]
		pods = append(pods, pod)
		keys = append(keys, pod.Namespace+"/"+pod.Name)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) {
		keys[i], keys[j] = keys[j], keys[i]
		pods[i], pods[j] = pods[j], pods[i]
	})
	return keys, pods
}

// rival is what both stores can do.
type rival interface {
	Update(key string, obj any)
	Get(key string) (any, bool)
	List() []any
	ByIndex(name, value string) ([]any, error)
	Replace(map[string]any, string)
}

type ours struct{ *memory.Store[any] }

func (s ours) Update(key string, obj any) {
	_ = s.PutAt(tarn.Key(key), obj, tarn.Version(obj.(*corev1.Pod).ResourceVersion))
}
func (s ours) Get(key string) (any, bool) { return s.Store.Get(tarn.Key(key)) }
func (s ours) Replace(items map[string]any, v string) {
	_ = s.Store.ReplaceAll(len(items), func(yield func(tarn.Key, any) bool) {
		for key, object := range items {
			if !yield(tarn.Key(key), object) {
				return
			}
		}
	}, tarn.At(tarn.Version(v)))
}

func newRivals(indexes int) map[string]func() rival {
	return map[string]func() rival{
		"client-go": func() rival {
			x := clientgo.Indexers{}
			for _, b := range benchIndexes[:indexes] {
				x[b.name] = b.function
			}
			return clientgo.NewThreadSafeStore(x, clientgo.Indices{})
		},
		"tarn": func() rival {
			s := memory.New[any]()
			for _, b := range benchIndexes[:indexes] {
				_ = s.AddIndex(b.name, memory.IndexFunc(b.function))
			}
			return ours{s}
		},
	}
}

func eachRival(b *testing.B, indexes int, n int, run func(b *testing.B, s rival, keys []string, pods []any)) {
	keys, pods := benchPods(n)
	for _, name := range []string{"client-go", "tarn"} {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			s := newRivals(indexes)[name]()
			for i, key := range keys {
				s.Update(key, pods[i])
			}
			runtime.GC()
			b.ReportAllocs()
			run(b, s, keys, pods)
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		eachRival(b, 2, n, func(b *testing.B, s rival, keys []string, pods []any) {
			i := 0
			for b.Loop() {
				s.Update(keys[i], pods[i])
				i = (i + 1) % n
			}
		})
	}
}

// BenchmarkMove changes an index value each time.
func BenchmarkMove(b *testing.B) {
	const n = 100_000
	eachRival(b, 2, n, func(b *testing.B, s rival, keys []string, pods []any) {
		i := 0
		for b.Loop() {
			moved := *pods[i].(*corev1.Pod)
			moved.Spec.NodeName = fmt.Sprintf("node-%04d", rand.IntN(1000))
			s.Update(keys[i], &moved)
			i = (i + 1) % n
		}
	})
}

func BenchmarkInsert(b *testing.B) {
	keys, pods := benchPods(100_000)
	for name, fresh := range newRivals(2) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := fresh()
				for i, key := range keys {
					s.Update(key, pods[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/insert")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		eachRival(b, 2, n, func(b *testing.B, s rival, keys []string, pods []any) {
			i := 0
			for b.Loop() {
				if _, ok := s.Get(keys[i]); !ok {
					b.Fatal("not found")
				}
				i = (i + 1) % n
			}
		})
	}
}

// BenchmarkGetWhileWriting measures Get beside a writer that never pauses.
func BenchmarkGetWhileWriting(b *testing.B) {
	const n = 100_000
	eachRival(b, 2, n, func(b *testing.B, s rival, keys []string, pods []any) {
		stop := make(chan struct{})
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := 0; ; i = (i + 1) % n {
				select {
				case <-stop:
					return
				default:
					s.Update(keys[i], pods[i])
				}
			}
		})
		i := n / 2
		for b.Loop() {
			s.Get(keys[i])
			i = (i + 1) % n
		}
		close(stop)
		writer.Wait()
	})
}

func BenchmarkList(b *testing.B) {
	const n = 100_000
	eachRival(b, 2, n, func(b *testing.B, s rival, keys []string, pods []any) {
		for b.Loop() {
			if len(s.List()) != n {
				b.Fatal("not all")
			}
		}
	})
}

// Compare BenchmarkWalk with BenchmarkList of client-go, which has no walk.
func BenchmarkWalk(b *testing.B) {
	const n = 100_000
	eachRival(b, 2, n, func(b *testing.B, s rival, keys []string, pods []any) {
		for b.Loop() {
			count := 0
			if own, ok := s.(ours); ok {
				for _, o := range own.All() {
					if o != nil {
						count++
					}
				}
			} else {
				for _, o := range s.List() {
					if o != nil {
						count++
					}
				}
			}
			if count != n {
				b.Fatal("not all")
			}
		}
	})
}

func BenchmarkByIndex(b *testing.B) {
	const n = 100_000
	eachRival(b, 2, n, func(b *testing.B, s rival, keys []string, pods []any) {
		i := 0
		for b.Loop() {
			// 2,000 hits
			if found, err := s.ByIndex("namespace", fmt.Sprintf("namespace-%02d", i%50)); err != nil || len(found) != n/50 {
				b.Fatal(len(found), err)
			}
			i++
		}
	})
}

func BenchmarkReplace(b *testing.B) {
	keys, pods := benchPods(200_000)
	items := map[string]any{}
	for i, key := range keys {
		items[key] = pods[i]
	}
	for _, full := range []bool{false, true} {
		for name, fresh := range newRivals(3) {
			b.Run(fmt.Sprintf("%s/full=%v", name, full), func(b *testing.B) {
				s := fresh()
				for b.Loop() {
					b.StopTimer()
					if !full {
						s = fresh()
					}
					copied := map[string]any{} // client-go keeps the map
					for key, pod := range items {
						copied[key] = pod
					}
					b.StartTimer()
					s.Replace(copied, "2")
				}
			})
		}
	}
}

// The cost of a write beside watches of other keys, prefixes and ranges, and the
// cost of a watch for its reader.
func BenchmarkWatches(b *testing.B) {
	for _, others := range []int{0, 100, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("write beside %d", others), func(b *testing.B) {
			s := memory.New[string]()
			for i := range others {
				switch key := tarn.Key(fmt.Sprintf("%c%d/", 'a'+rune(i%26), i)); i % 3 {
				case 0:
					s.GetWatch(b.Context(), key)
				case 1:
					s.PrefixWatch(b.Context(), key)
				case 2:
					s.RangeWatch(b.Context(), key, key+"5")
				}
			}
			for b.Loop() {
				_ = s.Put("m/1", "x")
			}
		})
	}
	b.Run("watch and write", func(b *testing.B) {
		s := memory.New[string]()
		for b.Loop() {
			_, _, changed := s.GetWatch(b.Context(), "m/1")
			_ = s.Put("m/1", "x")
			<-changed
		}
	})
}
