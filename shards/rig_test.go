package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
)

// cluster is a server with objects to work on, and the processes that do.
type cluster struct {
	t       *testing.T
	server  *apiserver.Server
	objects []*corev1.ConfigMap
	latency time.Duration

	mu sync.Mutex
	// working has the process that works on an object.
	working  map[string]string
	overlaps int
	// down says that no request is answered.
	down      bool
	processes []*process
}

func newCluster(t *testing.T, objects int) *cluster {
	t.Helper()
	c := &cluster{t: t, server: apiserver.New(apiserver.Options{AnyNamespace: true}), working: map[string]string{}, latency: 5 * time.Millisecond}
	for i := range objects {
		if err := c.server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: fmt.Sprint("o", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	all, err := kube.Reflect[*corev1.ConfigMap](ctx, c.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := all.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-all.Done()
	for _, object := range all.All() {
		c.objects = append(c.objects, object)
	}
	return c
}

// close ends everything.
func (c *cluster) close() {
	for _, p := range c.processes {
		p.end()
	}
	c.server.Close()
}

// begin notes that a process works on an object. Nobody else may.
func (c *cluster) begin(process, object string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.working[object]; other != "" {
		c.overlaps++
		c.t.Errorf("%v: %s and %s both work on %s", time.Now(), other, process, object)
	}
	c.working[object] = process
}

func (c *cluster) end(object string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.working, object)
}

// process is a member with a copy, and a worker.
type process struct {
	cluster *cluster
	name    string
	member  *Member
	copied  *tarn.Replica[*corev1.ConfigMap]
	stop    context.CancelFunc
	done    sync.WaitGroup
	// work is how long the work on an object takes.
	work time.Duration

	mu  sync.Mutex
	cut bool
	// idle has the worker begin nothing.
	idle bool
	// loseFirst has the process not get the answer to its first write, and then readOnly be
	// set: it can only read.
	loseFirst, readOnly bool
	paused              chan struct{}
	drift               float64
	began               time.Time
	gained              int
}

// waitResumed waits while the process is paused.
func (p *process) waitResumed() {
	p.mu.Lock()
	paused := p.paused
	p.mu.Unlock()
	if paused != nil {
		<-paused
	}
}

// now is the clock of the process, which is wrong and drifts.
func (p *process) now() time.Time {
	p.waitResumed()
	return time.Now().Add(time.Hour + time.Duration(p.drift*float64(time.Since(p.began))))
}

var errCut = errors.New("the network is cut")

func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	p.waitResumed()
	p.mu.Lock()
	cut := p.cut || p.readOnly && r.Method != http.MethodGet
	p.mu.Unlock()
	p.cluster.mu.Lock()
	cut = cut || p.cluster.down
	p.cluster.mu.Unlock()
	if cut {
		return nil, errCut
	}
	select {
	case <-time.After(p.cluster.latency):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	answer, err := p.cluster.server.Config().Transport.RoundTrip(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.loseFirst && r.Method != http.MethodGet {
		p.loseFirst, p.readOnly = false, true
		_ = answer.Body.Close() // it is not read
		return nil, errCut
	}
	if err == nil {
		answer.Body = &cutBody{answer.Body, p}
	}
	return answer, err
}

// cutBody brings nothing to a process that is cut off.
type cutBody struct {
	io.ReadCloser
	process *process
}

func (b *cutBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.process.mu.Lock()
	defer b.process.mu.Unlock()
	if b.process.cut {
		return 0, errCut
	}
	return n, err
}

// set says what the network does to the process.
func (p *process) set(cut, readOnly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.readOnly = cut, readOnly
}

const (
	testDuration = 10 * time.Second
	testMargin   = 4 * time.Second
)

// start starts a process. drift is how much faster its clock is.
func (c *cluster) start(drift float64) *process {
	c.t.Helper()
	return c.run(&process{drift: drift})
}

func (c *cluster) run(p *process) *process {
	c.t.Helper()
	p.cluster, p.name, p.began, p.work = c, fmt.Sprintf("p%02d", len(c.processes)), time.Now(), 50*time.Millisecond
	cfg := c.server.Config()
	cfg.Transport = p
	var err error
	p.member, err = New(cfg, Options{
		Namespace: "work", Group: "test", Identity: p.name, Duration: testDuration, Margin: testMargin, now: p.now,
		OnError: func(context.Context, error) {}, OnGain: func(kube.ShardSet) { p.gained++ },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	p.stop = cancel
	c.processes = append(c.processes, p)
	p.copied, err = kube.Reflect[*corev1.ConfigMap](ctx, cfg, kube.Sharded(p.member.Sharding()), kube.OnError(func(context.Context, error) {}),
		kube.Configure(func(o *tarn.Options[*corev1.ConfigMap]) { o.Delay = func() time.Duration { return time.Second } }))
	if err != nil {
		c.t.Fatal(err)
	}
	p.done.Go(func() { _ = p.member.Run(ctx) })
	p.done.Go(func() { p.workOn(ctx) })
	return p
}

// workOn works on all objects in turn, as far as the process may.
func (p *process) workOn(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		for _, object := range p.cluster.objects {
			p.mu.Lock()
			idle := p.idle
			p.mu.Unlock()
			if idle {
				break
			}
			done, ok := p.member.Begin(object)
			if !ok {
				continue
			}
			if _, held := p.copied.Get(tarn.Key(object.Namespace + "/" + object.Name)); !held {
				p.cluster.t.Errorf("%s works on %s, and its copy does not have it", p.name, object.Name)
			}
			p.cluster.begin(p.name, object.Name)
			time.Sleep(p.work)
			p.waitResumed()
			p.cluster.end(object.Name)
			done()
		}
	}
}

// stopWorking has the worker begin nothing more.
func (p *process) stopWorking() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = true
}

// pause stops the process for a while, as a long collection or a sleeping machine does.
func (p *process) pause(d time.Duration) {
	resume := make(chan struct{})
	p.mu.Lock()
	p.paused = resume
	p.mu.Unlock()
	time.Sleep(d)
	p.mu.Lock()
	p.paused = nil
	p.mu.Unlock()
	close(resume)
}

// kill ends the process without a word.
func (p *process) kill() {
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.end()
}

// end ends the process, and waits for it.
func (p *process) end() {
	p.stop()
	p.done.Wait()
	<-p.copied.Done()
}

// unowned counts the objects that nobody may work on.
func (c *cluster) unowned(processes ...*process) (n int) {
	for _, object := range c.objects {
		owners := 0
		for _, p := range processes {
			if p.member.Owns(object) {
				owners++
			}
		}
		if owners == 0 {
			n++
		}
	}
	return n
}

// measure runs f, and returns the longest time that an object had no owner until all have
// one again.
func (c *cluster) measure(f func(), processes ...*process) time.Duration {
	c.t.Helper()
	const step = 10 * time.Millisecond
	since := map[string]time.Time{}
	var longest time.Duration
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		f()
	}()
	ended := false
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(step) {
		select {
		case <-finished:
			ended = true
		default:
		}
		for _, object := range c.objects {
			owned := false
			for _, p := range processes {
				owned = owned || p.member.Owns(object)
			}
			began, open := since[object.Name]
			switch {
			case owned && open:
				delete(since, object.Name)
				longest = max(longest, time.Since(began))
			case !owned && !open:
				since[object.Name] = time.Now()
			}
		}
		if ended && len(since) == 0 && c.settled(processes) {
			return longest
		}
		if time.Now().After(deadline) {
			for _, p := range processes {
				c.t.Logf("%s: %+v", p.name, p.member.Health())
			}
			c.t.Fatalf("%d objects have no owner", len(since))
		}
	}
}

// settled reports whether every process that stays has its part, and holds no more.
func (c *cluster) settled(processes []*process) bool {
	var alive []*process
	for _, p := range processes {
		if p.member.work.until().After(p.now()) && !p.member.leaving.Load() {
			alive = append(alive, p)
		}
	}
	const slack = 1.5 / slotCount
	for _, p := range alive {
		h, part := p.member.Health(), 1/float64(len(alive))
		if h.Held.Share() > part+slack || h.Owned.Share() < part-slack {
			return false
		}
	}
	return len(alive) > 0
}
