package relay

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/podfile"
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
		read, err := podfile.Read(*podFile)
		if err != nil {
			b.Fatal(err)
		}
		list.Items = read
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

// BenchmarkJournal is what an update costs in the journal: encoding, compression, and bytes
// on disk; and what a list at an old version costs for each update that it undoes. An
// operation is an update of one of the pods, in their order, so that no block has two states
// of one pod.
//
//	go test -run - -bench Journal ./relay -pods pods.pb.zst
func BenchmarkJournal(b *testing.B) {
	of, _ := apiserver.BuiltinResource(pods)
	raw := rawPods(b)
	j, _, err := openJournal(b.TempDir(), of, journalBounds{bytes: 1 << 40, age: 24 * time.Hour}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer j.close()
	var objects []Object
	for _, r := range raw {
		o, err := of.NewObject(r)
		if err != nil {
			b.Fatal(err)
		}
		objects = append(objects, o)
	}
	version, place := int64(1<<40), 0
	var c chunk
	for b.Loop() {
		version++
		at := int(version) % len(objects)
		was := []byte(versionString(objects[at].Version()))
		now := fmt.Appendf(nil, "1%0*d", len(was)-1, version%1_000_000)[:len(was)] // of the same length
		later, err := of.NewObject(bytes.Replace(raw[at], was, now, 1))
		if err != nil {
			b.Fatal(err)
		}
		c.events = append(c.events, &apiserver.Event{Type: watch.Modified, Version: version, Heard: time.Now(), Old: objects[at], Object: later})
		if len(c.events) == journalEvents {
			c.position, c.contact = tarn.At(tarn.Version(versionString(version))), time.Now()
			if err := j.append(place, max(j.version, 1), &c); err != nil {
				b.Fatal(err)
			}
			place += len(c.events)
			c.events = nil
		}
	}
	if place > 0 {
		b.ReportMetric(float64(j.total())/float64(place), "disk-bytes/update")
		began := time.Now()
		if _, err := j.undo(b.Context(), 0, place); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/float64(place), "µs/undone-update")
	}
}
