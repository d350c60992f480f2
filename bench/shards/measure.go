package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	goruntime "runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/bench/report"
	"github.com/tarnproject/tarn/kube"
)

// figures are those of one copy. Times are CPU, in seconds.
type figures struct {
	Objects                 int
	Heap, Sync, Update      float64
	Dropped, DroppedUpdates int64
}

// measure makes a copy, and says on standard output when it is there. When told so, it
// prints what it has cost.
func measure() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := &rest.Config{Host: *server, QPS: -1, DisableCompression: *plain}
	if *alone {
		cfg.Wrap(withoutShardSelector)
	}
	var reading pausable
	if *backlog {
		cfg.Wrap(reading.wrap)
	}
	if *inJSON {
		cfg.AcceptContentTypes = runtime.ContentTypeJSON
	}
	opts := []kube.Option{}
	if *lists {
		opts = append(opts, kube.WatchList(false))
	}
	if *shard >= 0 {
		opts = append(opts, kube.Shard(*shard, *shards))
	}
	before, began := heap(), report.CPUTime().Seconds()
	copied, err := kube.Reflect[*corev1.Pod](ctx, cfg, opts...)
	if err != nil {
		return err
	}
	if err := copied.WaitSynced(ctx); err != nil {
		return err
	}
	f := figures{Sync: report.CPUTime().Seconds() - began}
	f.Heap, f.Objects = heap()-before, copied.Len()
	var dropped int64
	if h := copied.Health().Shard; h != nil {
		dropped = h.Dropped
		if h.ByServer == *alone {
			return fmt.Errorf("the shard is not selected as expected: %v", h)
		}
	}
	reading.Lock()
	began = report.CPUTime().Seconds()
	fmt.Println("synced")
	told := bufio.NewReader(os.Stdin)
	if _, err := told.ReadString('\n'); err != nil {
		return err
	}
	reading.Unlock()
	if _, err := told.ReadString('\n'); err != nil {
		return err
	}
	f.Update = report.CPUTime().Seconds() - began
	if h := copied.Health().Shard; h != nil {
		f.Dropped, f.DroppedUpdates = h.Dropped, h.Dropped-dropped
	}
	err = json.NewEncoder(os.Stdout).Encode(f)
	cancel()
	<-copied.Done()
	return err
}

// heap is what is reachable.
func heap() float64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
