package demo

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config configures a workload.
type Config struct {
	// Pods is the usual number of pods, Databases the number of custom resources.
	Pods, Databases int
	// Rate is the number of changes per second in the long run. At 0 no change
	// begins; those that have begun finish.
	Rate float64
	// Seed determines all random choices.
	Seed uint64
	// Progress, if set, receives the number of pods while the cluster is built.
	Progress func(pods int)
	// Logger logs refused writes; slog.Default if nil.
	Logger *slog.Logger
}

// nodes is the number of nodes that the pods need.
func (c Config) nodes() int { return 3 + c.Pods/24 }

// Workload simulates the activity of a cluster.
//
//   - The same seed makes the same choices: names, sizes, which change happens to
//     which object and when, as long as no other user writes to the cluster.
//   - SetRate and Writes may be called from any goroutine. Everything else belongs
//     to one goroutine.
type Workload struct {
	random
	config Config
	target Target
	ctx    context.Context // for the calls that are under way

	queue     eventQueue
	budget    budget
	eventLog  eventLog
	nodes     []*node
	apps      []*app
	databases []*database

	wantedRate atomic.Uint64 // in the form of math.Float64bits
	writes     atomic.Uint64
	refused    error // the first one

	external    chan func()     // what others did, for Run to see
	terminating map[string]bool // namespaces that another user deletes
}

// Build creates a cluster on a target, with everything running.
func Build(ctx context.Context, target Target, config Config) (*Workload, error) {
	config.Logger = cmp.Or(config.Logger, slog.Default())
	w := &Workload{
		random: newRandom(config.Seed), config: config, target: target, ctx: ctx,
		queue:    eventQueue{now: time.Now()},
		eventLog: eventLog{limit: 200 + config.Pods, latest: map[eventKey]*corev1.Event{}},
		external: make(chan func()), terminating: map[string]bool{},
	}
	w.SetRate(config.Rate)
	for _, place := range namespaces {
		w.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place.namespace, Labels: map[string]string{teamLabel: place.team}}})
	}
	for range config.nodes() {
		w.addNode()
	}
	sizes, pods := w.sizes(config.Pods), 0
	for i, who := range identities(len(sizes)) {
		w.createApp(who, sizes[i])
		if pods += int(sizes[i]); config.Progress != nil {
			config.Progress(pods)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	w.put(databases())
	for i := range config.Databases {
		w.addDatabase(i)
	}
	if w.refused != nil {
		return nil, fmt.Errorf("demo: the cluster cannot be created: %w", w.refused)
	}
	w.budget.left = 0
	w.writes.Store(0)
	w.queue.after(tick, w.tick)
	return w, nil
}

// sizes spreads pods over apps: a few large ones, many small ones, none empty.
func (w *Workload) sizes(pods int) []int32 {
	sizes := make([]int32, min(pods, 4+pods/20))
	var weights []int
	for i := range sizes {
		sizes[i] = 1
		for range 1 + int(4*w.ExpFloat64()) {
			weights = append(weights, i)
		}
	}
	for range pods - len(sizes) {
		sizes[pick(w.random, weights)]++
	}
	return sizes
}

// SetRate changes [Config.Rate].
func (w *Workload) SetRate(rate float64) { w.wantedRate.Store(math.Float64bits(rate)) }

func (w *Workload) rate() float64 { return math.Float64frombits(w.wantedRate.Load()) }

// Writes is the number of changes since the cluster was built.
func (w *Workload) Writes() uint64 { return w.writes.Load() }

// Nodes is the number of nodes of the cluster.
func (w *Workload) Nodes() int { return len(w.nodes) }

// Run runs until ctx ends.
//
// It does not catch up: when the machine was suspended, or is too slow for the
// rate, everything happens later.
func (w *Workload) Run(ctx context.Context) {
	const late = time.Second
	w.ctx = ctx
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		next, _ := w.queue.next() // there is always the next tick
		if behind := now.Sub(next); behind > late {
			w.queue.postpone(behind)
		}
		if w.queue.step(now) {
			continue
		}
		timer.Reset(next.Sub(now))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case handle := <-w.external:
			if now := time.Now(); now.Before(next) {
				w.queue.now = now
			}
			handle()
		}
	}
}

// advance runs all actions of the next period at once.
func (w *Workload) advance(d time.Duration) {
	until := w.queue.now.Add(d)
	for w.queue.step(until) {
	}
	w.queue.now = until
}

// put writes an object. In a namespace that is being deleted it writes only pods,
// to finish their deletion.
func (w *Workload) put(object Object) {
	if _, isPod := object.(*corev1.Pod); !isPod && w.terminating[object.GetNamespace()] {
		w.budget.left--
		return
	}
	w.afterWrite(object, w.target.Put(object))
}

// create writes an object, and sets its UID for owner references.
func (w *Workload) create(object Object) {
	w.put(object)
	if w.terminating[object.GetNamespace()] {
		return
	}
	uid, err := w.target.UID(w.ctx, object)
	if err != nil {
		w.logRefused(object, err)
		return
	}
	object.SetUID(uid)
}

func (w *Workload) delete(object Object) { w.afterWrite(object, w.target.Delete(object)) }

func (w *Workload) afterWrite(object Object, err error) {
	w.budget.left--
	w.writes.Add(1)
	if err != nil {
		w.logRefused(object, err)
	}
}

// logRefused logs a refused write and continues: another user may have changed the
// object, and its next write may succeed.
func (w *Workload) logRefused(object Object, err error) {
	if w.ctx.Err() != nil {
		return
	}
	if w.refused == nil {
		w.refused = err
	}
	w.config.Logger.Debug("the demonstration's cluster refuses a write", "object", fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName()), "err", err)
}

// digest makes up an image's digest: always the same for the same name.
func digest(image string) string {
	sum := fnv.New128a()
	sum.Write([]byte(image))
	half := hex.EncodeToString(sum.Sum(nil))
	return half + half
}
