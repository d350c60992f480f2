package relay

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/memory"
)

var podFile = flag.String("pods", "", "`file` with the protobuf of a PodList, as a server sends it, compressed by zstd; without it pods are made up")

// rawPods are pods as a server sends them.
func rawPods(b *testing.B) [][]byte {
	var list corev1.PodList
	if *podFile == "" {
		for i := range 2000 {
			p := pod(fmt.Sprint("pod-", i), fmt.Sprint(i%10))
			p.ResourceVersion = fmt.Sprint(1000 + i)
			p.UID = "8a7e32ab-0000-0000-0000-000000000000"
			for c := range 10 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", c), Image: fmt.Sprint("registry.example.com/team/image:", i), Env: make([]corev1.EnvVar, 60)})
			}
			list.Items = append(list.Items, *p)
		}
	} else {
		data, err := os.ReadFile(*podFile)
		if err != nil {
			b.Fatal(err)
		}
		decoder, err := zstd.NewReader(nil)
		if err != nil {
			b.Fatal(err)
		}
		defer decoder.Close()
		if data, err = decoder.DecodeAll(data, nil); err != nil {
			b.Fatal(err)
		}
		var envelope kruntime.Unknown
		if err := envelope.Unmarshal(data[4:]); err != nil {
			b.Fatal(err)
		}
		if err := list.Unmarshal(envelope.Raw); err != nil {
			b.Fatal(err)
		}
	}
	var all [][]byte
	for i := range list.Items {
		raw, err := list.Items[i].Marshal()
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, raw)
	}
	return all
}

// BenchmarkMemory is how much memory the content of a relay takes for each byte on the
// wire: the store of the copy and the state, without the log, and without encodings that
// clients have asked for.
//
//	go test -run - -bench Memory ./relay -pods pods.pb.zst
func BenchmarkMemory(b *testing.B) {
	of, _ := apiserver.BuiltinResource(pods)
	raw := rawPods(b)
	wire := 0
	for _, r := range raw {
		wire += len(r)
	}
	for b.Loop() {
		before := heap()
		store := memory.New[Object]()
		s := &state{name: "pods", bytes: 64 << 20, age: time.Hour}
		var items []tarn.Item[Object]
		var changes []tarn.Change[Object]
		for _, r := range raw {
			o, err := of.NewObject(append([]byte(nil), r...))
			if err != nil {
				b.Fatal(err)
			}
			meta, err := describe(o)
			if err != nil {
				b.Fatal(err)
			}
			items = append(items, tarn.Item[Object]{Meta: meta, Object: o})
			changes = append(changes, tarn.Change[Object]{Type: tarn.Add, Key: meta.Key, Object: o, Version: meta.Version})
		}
		if err := store.Replace(items, tarn.At("1")); err != nil {
			b.Fatal(err)
		}
		if err := s.Commit(b.Context(), tarn.Batch[Object]{Whole: true, Changes: changes, Positions: []tarn.Position{tarn.At("1")}, LastContact: time.Now()}); err != nil {
			b.Fatal(err)
		}
		items, changes = nil, nil
		took := heap() - before
		b.ReportMetric(float64(took)/float64(wire), "bytes/byte")
		b.ReportMetric(float64(took)/float64(len(raw)), "bytes/pod")
		b.ReportMetric(float64(wire)/float64(len(raw)), "wire-bytes/pod")
		runtime.KeepAlive(store)
		runtime.KeepAlive(s)
		runtime.KeepAlive(items)
		runtime.KeepAlive(changes)
	}
	runtime.KeepAlive(raw)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
