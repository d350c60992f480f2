package protobuf

import (
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// distinctPods are pods that have nothing in common: each has text of its own
// everywhere.
func distinctPods(t testing.TB, n int) [][]byte {
	random := rand.New(rand.NewSource(1))
	word := func(like string) string {
		b := []byte(like)
		for i := range b {
			b[i] = byte('a' + random.Intn(26))
		}
		return string(b)
	}
	var raws [][]byte
	for i := range n {
		pod := wiretest.Replica("set", i)
		pod.Labels, pod.Annotations = map[string]string{word("label"): word("value")}, map[string]string{word("note"): word(strings.Repeat("x", 64))}
		pod.OwnerReferences[0].UID = pod.UID
		c := &pod.Spec.Containers[0]
		for j := range c.Env {
			c.Env[j].Name, c.Env[j].Value = word(c.Env[j].Name), word(c.Env[j].Value)
		}
		c.Args = []string{word("--config=/etc/config"), word("--verbose")}
		c.ReadinessProbe.HTTPGet.Path = word("/healthz")
		pod.Spec.Tolerations[0].Key = word("toleration")
		pod.ManagedFields[0].FieldsV1.SetRawString(word(strings.Repeat("f", 500)))
		raws = append(raws, wiretest.Marshal(t, pod))
	}
	return raws
}

// BenchmarkProtobuf decodes pods: "first" with an empty pool each round, "again"
// with a pool that knows them and with the objects in use.
func BenchmarkProtobuf(b *testing.B) {
	of := reflect.TypeFor[corev1.Pod]()
	for name, raws := range map[string][][]byte{"replicas": replicas(b, 1000), "distinct": distinctPods(b, 1000)} {
		b.Run(name+"/stock", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := stockProtobuf(of, raws[i%len(raws)]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/first", func(b *testing.B) {
			b.ReportAllocs()
			var d *Decoder
			for i := 0; b.Loop(); i++ {
				if i%len(raws) == 0 {
					d = newProtobuf(b, of, pool.Options{Pool: pool.New()})
				}
				decodePod(b, d, raws[i%len(raws)])
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			b.ReportAllocs()
			d := newProtobuf(b, of, pool.Options{Pool: pool.New()})
			var inUse []*corev1.Pod
			for _, raw := range raws {
				inUse = append(inUse, decodePod(b, d, raw))
			}
			for i := 0; b.Loop(); i++ {
				decodePod(b, d, raws[i%len(raws)])
			}
			runtime.KeepAlive(inUse)
		})
	}
}

// BenchmarkProtobufParallel measures the locks of the pool: CPU per object should
// not depend on the number of goroutines.
func BenchmarkProtobufParallel(b *testing.B) {
	raws := replicas(b, 1000)
	for _, goroutines := range []int{1, 2, 8} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			d := newProtobuf(b, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
			b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.Int(); pb.Next(); i++ {
					decodePod(b, d, raws[i%len(raws)])
				}
			})
		})
	}
}

// BenchmarkProtobufHeap reports the memory of pods that are held, pool included.
func BenchmarkProtobufHeap(b *testing.B) {
	of := reflect.TypeFor[corev1.Pod]()
	for name, raws := range map[string][][]byte{"replicas": replicas(b, 5000), "distinct": distinctPods(b, 5000)} {
		for _, stock := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/stock=%v", name, stock), func(b *testing.B) {
				for b.Loop() {
					var before, after runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&before)
					parts := pool.New()
					d := newProtobuf(b, of, pool.Options{Pool: parts})
					kept := make([]any, 0, len(raws))
					for _, raw := range raws {
						decode := d.Decode
						if stock {
							decode = func(raw []byte) (any, error) { return stockProtobuf(of, raw) }
						}
						pod, err := decode(raw)
						if err != nil {
							b.Fatal(err)
						}
						kept = append(kept, pod)
					}
					for range 3 {
						runtime.GC()
						parts.Collect()
					}
					runtime.ReadMemStats(&after)
					b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(raws)), "heap-B/pod")
					b.ReportMetric(float64(after.HeapObjects-before.HeapObjects)/float64(len(raws)), "objects/pod")
					runtime.KeepAlive(kept)
					runtime.KeepAlive(d)
				}
			})
		}
	}
}
