// Package measure measures what it costs a process to hold a live copy of a
// resource: with client-go's informer, and with Tarn.
//
// Each is set up as its users would: built-in kinds as Go types over protobuf, others untyped
// over JSON, with one handler that is called for every object. A process measures one copy
// and ends, so that no other copy affects its figures.
package measure

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// The holders of copies.
const (
	ClientGo = "client-go"
	Tarn     = "tarn"
)

// Task is what one process measures.
type Task struct {
	Holder   string
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace, Labels and Fields narrow the copy.
	Namespace, Labels, Fields string
}

// Result is the result of a task.
type Result struct {
	Objects int `json:"objects"`
	// Typed says that the objects were Go structs and not maps.
	Typed bool `json:"typed"`
	// Sync is how long it took until the copy was complete and the handler had
	// seen it, CPU how much processor time that was.
	Sync time.Duration `json:"sync"`
	CPU  time.Duration `json:"cpu"`
	// Heap is the size of the copy after garbage collection, HeapObjects the number of its
	// allocations.
	Heap        uint64 `json:"heap"`
	HeapObjects uint64 `json:"heapObjects"`
	// Peak is the largest growth of the process's memory while copying, 0 where the
	// system does not report it.
	Peak uint64 `json:"peak,omitempty"`
	// Transport is how the objects came, such as "HTTP/2.0, TLS, gzip".
	Transport string `json:"transport,omitempty"`
}

// A holding is a copy that is kept.
type holding struct {
	// synced waits until the copy is complete.
	synced func(ctx context.Context) error
	count  func() int
	typed  bool
}

// Run measures one copy. Its process should do nothing else.
func Run(ctx context.Context, cfg *rest.Config, task Task) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start, ok := map[string]func(context.Context, *rest.Config, Task) (*holding, error){
		ClientGo: startInformer, Tarn: startReplica,
	}[task.Holder]
	if !ok {
		return Result{}, fmt.Errorf("nobody called %q is known to hold a copy", task.Holder)
	}
	resident := beginPeak()
	before := use()
	var seen transports
	copied, err := start(ctx, seen.watching(cfg, task.Resource.Resource), task)
	if err != nil {
		return Result{}, err
	}
	if err := copied.synced(ctx); err != nil {
		return Result{}, err
	}
	after, peak := use(), peakSince(resident)
	collect()
	held := use()
	result := Result{
		Objects: copied.count(), Typed: copied.typed,
		Sync: after.at.Sub(before.at), CPU: after.cpu - before.cpu,
		Heap: held.heap - min(before.heap, held.heap), HeapObjects: held.objects - min(before.objects, held.objects),
		Peak: peak, Transport: seen.last(),
	}
	runtime.KeepAlive(copied)
	return result, nil
}

// usage is what the process has used so far.
type usage struct {
	at            time.Time
	cpu           time.Duration
	heap, objects uint64
}

func use() usage {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return usage{at: time.Now(), cpu: cpuTime(), heap: stats.HeapAlloc, objects: stats.HeapObjects}
}

// collect runs twice: after the first collection, finalizers and the victims of sync.Pool may
// still hold memory.
func collect() {
	runtime.GC()
	runtime.GC()
}

func beginPeak() uint64 {
	collect()
	debug.FreeOSMemory()
	return resetPeak()
}

func peakSince(resident uint64) uint64 {
	peak := peakMemory()
	return peak - min(resident, peak)
}
