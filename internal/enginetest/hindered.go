package enginetest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// Hindered is an engine that is slow, or full, for a time.
type Hindered struct {
	// Engine is read as in [Run]. It needs no Feed: this process feeds it, by a copy of the
	// ConfigMaps of a cluster that Follow starts. Its sink must keep every state.
	Engine
	Follow func(ctx context.Context, cluster *rest.Config) (*tarn.Replica[*corev1.ConfigMap], error)
	// Bound is how many bytes of states the sink lets wait, and States how many these are.
	Bound  int64
	States int
	// Hinder makes the engine slow or full, and Relieve ends that.
	Hinder, Relieve func()
	// Fails says that commits fail meanwhile, and do not only take long.
	Fails bool
}

// largestGrowth is by how much the heap may grow beside the states that wait.
const largestGrowth = 64 << 20

// RunHindered makes more changes than may wait while the engine is hindered. Health must say
// how far behind the engine is, and memory must stay bounded. Afterwards everything is there,
// or marked as folded.
func RunHindered(t *testing.T, e Hindered) Report {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{BookmarkInterval: time.Second})
	must(t, err)
	defer server.Close()
	model := &Model{}
	source := &load{server: server, model: model, dice: rand.New(rand.NewPCG(1, 2)), exists: map[string]bool{}}
	must(t, source.step(0))
	ctx, stop := context.WithCancel(t.Context())
	copied, err := e.Follow(ctx, server.Config())
	must(t, err)
	defer func() {
		stop()
		<-copied.Done()
	}()
	await(t, e.Engine, model.Last())

	before := heap()
	e.Hinder()
	var most tarn.SinkHealth
	step := 0
	change := func() {
		step++
		must(t, source.step(step))
		h := copied.Health().Sinks[0]
		if h.PendingBytes > 2*e.Bound { // one batch is on its way, and one waits
			t.Fatalf("after %d changes, %d bytes wait, and %d are allowed", step, h.PendingBytes, e.Bound)
		}
		most.Pending, most.Lag = max(most.Pending, h.Pending), max(most.Lag, h.Lag)
		if h.Err != nil {
			most.Err = h.Err
		}
	}
	for step < 3*e.States {
		change()
	}
	for deadline := time.Now().Add(settleTimeout); most.Lag < time.Second || e.Fails && most.Err == nil; time.Sleep(10 * time.Millisecond) {
		change()
		if time.Now().After(deadline) {
			t.Fatalf("Health says that %d changes wait, for %s at most (%v)", most.Pending, most.Lag, most.Err)
		}
	}
	if grown := heap() - before; grown > 2*e.Bound+largestGrowth {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if most.Pending == 0 {
		t.Error("Health says that nothing waits")
	}
	e.Relieve()
	report := compare(t, e.Engine, model)
	if report.Gaps == 0 || report.Marked == 0 {
		t.Errorf("nothing was folded: %s", report)
	}
	if h := copied.Health().Sinks[0]; h.Err != nil {
		t.Errorf("afterwards Health says %v", h.Err)
	}
	return report
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
