package protobuf

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// expire makes every remembered state and part due to be verified.
func (p *lastStates) expire() {
	for i := range p.shards {
		s := &p.shards[i]
		for uid, note := range s.once.entries {
			note.checked = 0
			s.once.entries[uid] = note
		}
		for uid, note := range s.more.entries {
			note.checked = 0
			s.more.entries[uid] = note
		}
	}
}

// BenchmarkVerify measures the cost of finding stray writes: per byte of the parts
// in a pool, and for updates with and without verification.
func BenchmarkVerify(b *testing.B) {
	const pods = 1000
	held := func(b *testing.B) *holding {
		h := hold(newProtobuf(b, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
		for i := range pods {
			h.pod(b, Added, wiretest.Replica(fmt.Sprint("set-", i/10), i))
		}
		return h
	}
	b.Run("parts", func(b *testing.B) {
		h := held(b)
		before := h.opts.Pool.Stats().Verified
		for b.Loop() {
			h.opts.Pool.Verify()
		}
		bytes := float64(h.opts.Pool.Stats().Verified - before)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/bytes, "ns/byte")
		b.ReportMetric(bytes/float64(b.N)/pods, "bytes/object")
	})
	for name, verified := range map[string]bool{"update": false, "update verified": true} {
		b.Run(name, func(b *testing.B) {
			h := held(b)
			before := h.opts.Pool.Stats().Verified
			updates := 0
			for round := 0; b.Loop(); round++ {
				b.StopTimer()
				raws := make([][]byte, pods)
				for i := range raws {
					raws[i] = wiretest.Marshal(b, wiretest.Restarted(wiretest.Replica(fmt.Sprint("set-", i/10), i), round))
				}
				if verified {
					h.lastStates.expire()
				}
				b.StartTimer()
				for _, raw := range raws {
					object, err := h.DecodeAt(Modified, raw, h.held)
					if err != nil {
						b.Fatal(err)
					}
					pod := object.(*corev1.Pod)
					h.put(pod.Namespace, pod.Name, pod)
					updates++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(updates), "ns/update")
			b.ReportMetric(float64(h.opts.Pool.Stats().Verified-before)/float64(updates), "bytes/update")
		})
	}
}
