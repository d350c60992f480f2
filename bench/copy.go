package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/bench/contender"
	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/bench/report"
)

// What is measured of a copy. Names that end in "per object" are those that a
// larger collection should not change.
const (
	heapPerObject    = "heap per object"
	objectsPerObject = "heap objects per object"
	peakMemory       = "peak RSS growth"
	syncTime         = "sync time"
	cpuPerObject     = "CPU per object"
	allocsPerObject  = "allocations per object"
	gcTime           = "GC time"
	gcCPU            = "GC CPU"
	cpuPerUpdate     = "CPU per update"
	allocsPerUpdate  = "allocations per update"
	heapUpdated      = "updated heap per object"
	getTime          = "Get"
	listTime         = "List / object"
	listAllocs       = "List allocations / object"
	diskSize         = "files / JSON of the objects"
)

const (
	// burstSize is how many updates come at once: enough to queue up, as after a
	// node's restart.
	burstSize = 500
	// paceSize is how many come at once where they come at a pace, paceTime how often.
	paceSize = 50
	paceTime = 50 * time.Millisecond
	// collections is how often the heap is collected to find how long it takes.
	collections = 7
	// readFor is how long reads are repeated.
	readFor = 200 * time.Millisecond
)

// measureCopy has a contender copy what a server has, and takes every figure.
// It is run in a process of its own.
func measureCopy(ctx context.Context, name string, t task) (report.Result, error) {
	c, ok := contender.ByName(name)
	if !ok {
		return nil, fmt.Errorf("there is no contender %q", name)
	}
	control := replay.Control{URL: t.Server.URL}
	info, err := t.info(ctx, control)
	if err != nil {
		return nil, err
	}
	config, err := t.Server.config()
	if err != nil {
		return nil, err
	}
	m := &copyMeter{name: name, profiles: t.Profiles, info: info}
	o := newObserver()

	m.begin()
	copied, err := c.Start(ctx, contender.Setup{Config: config, Changed: o.changed, Folder: t.Folder})
	if err != nil {
		return nil, fmt.Errorf("%s: start: %w", name, err)
	}
	if err := copied.Synced(ctx); err != nil {
		return nil, fmt.Errorf("%s: sync: %w", name, err)
	}
	m.synced()
	if c.Leaves != "" {
		err := m.leave(ctx, copied)
		return m.result, err
	}
	m.collect()
	if err := m.updates(func() error { return o.follow(ctx, control, t.Paced, c.Format, info, copied) }); err != nil {
		return nil, fmt.Errorf("%s: updates: %w", name, err)
	}
	if err := m.reads(copied); err != nil {
		return nil, fmt.Errorf("%s: reads: %w", name, err)
	}
	runtime.KeepAlive(copied)
	return m.result, nil
}

// info describes what the server has. A real server cannot be asked.
func (t task) info(ctx context.Context, control replay.Control) (replay.Info, error) {
	if t.Known != nil {
		return *t.Known, nil
	}
	return control.Info(ctx)
}

// observer is the user that follows the copy.
type observer struct {
	awaited atomic.Pointer[string]
	reached chan struct{}
}

func newObserver() *observer { return &observer{reached: make(chan struct{}, 1)} }

func (o *observer) changed(object metav1.Object) {
	if v := o.awaited.Load(); v != nil && object.GetResourceVersion() == *v {
		select {
		case o.reached <- struct{}{}:
		default: // already signalled
		}
	}
}

// follow has all updates sent, burst by burst, each when the one before has come
// through to the user, and waits until the copy has settled. At a pace, bursts are
// small and come at their time.
func (o *observer) follow(ctx context.Context, control replay.Control, paced bool, format replay.Format, info replay.Info, copied contender.Copy) error {
	size, pace := burstSize, time.Duration(0)
	if paced {
		size, pace = paceSize, paceTime
	}
	began := time.Now()
	for from := 0; from < info.Updates; from += size {
		time.Sleep(time.Until(began.Add(time.Duration(from/size) * pace)))
		to := min(from+size, info.Updates)
		o.awaited.Store(new(info.UpdateVersion(to - 1)))
		if err := control.Burst(ctx, format, from, to); err != nil {
			return err
		}
		if _, err := receive(ctx, o.reached, "the last update of a burst"); err != nil {
			return err
		}
	}
	if copied.Settled != nil {
		return copied.Settled(ctx)
	}
	return nil
}
