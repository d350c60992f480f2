package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
)

// Config says which day to simulate.
type Config struct {
	Seed uint64
	// Informer tests package cache's shared informer instead of a replica.
	Informer bool
	// Sinks has a replica with sinks follow the server, in a process that ends and is
	// killed several times a day.
	Sinks bool
	// Writes is the number of writes to the server; 120 if 0.
	Writes int
	// Suppress disables faults, to find out which ones matter.
	Suppress func(faults.Place) bool
	// Source is how a replica reads the server, for sources that are made of another
	// interface; by itself if nil.
	Source func(*Server) tarn.Source[*Object]
	// Plant is a bug to plant in the pipeline, to check that it is found.
	Plant Bug
}

const (
	length = 10 * time.Minute
	// calm is the time after the day within which the copy must equal the server. Most
	// days need seconds; an object without a readable key may need ten minutes.
	calm = 25 * time.Minute
)

// Report is the result of a day.
type Report struct {
	Config     Config
	Violations []string
	Faults     faults.History
	Lines      []Line
}

// Failed reports whether a promise was broken.
func (r *Report) Failed() bool { return len(r.Violations) > 0 }

// Run simulates a day. It must be called inside of a testing/synctest bubble,
// where the day takes milliseconds.
func Run(cfg Config) *Report {
	if cfg.Writes == 0 {
		cfg.Writes = 120
	}
	d := &day{
		cfg:    cfg,
		server: NewServer(),
		record: &record{},
		end:    time.Now().Add(length),
	}
	d.plan = faults.Random(cfg.Seed).Until(d.end).Suppress(cfg.Suppress)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.seen = d.seenByCopy
	switch {
	case cfg.Sinks:
		d.liveWithSinks(ctx)
	case cfg.Informer:
		d.copy = newInformerCopy(d)
		d.live(ctx, cancel)
	default:
		d.copy = newReplicaCopy(d)
		d.live(ctx, cancel)
	}
	return &Report{Config: cfg, Violations: d.record.violated(), Faults: d.plan.History(), Lines: d.lines()}
}

// day is a running simulation.
type day struct {
	cfg    Config
	server *Server
	plan   *faults.Plan
	record *record
	copy   replicated
	end    time.Time
	// seen is the oldest version that any copy or sink has seen; false if that is
	// unknown.
	seen func() (int, bool)
}

// chance returns a separate random generator for each user, so that none changes the
// decisions of the others.
func (d *day) chance(who string) *rand.Rand {
	h := uint64(14695981039346656037)
	for i := range len(who) {
		h = (h ^ uint64(who[i])) * 1099511628211
	}
	return rand.New(rand.NewPCG(d.cfg.Seed, h))
}

// jitter is the random part of the copy's waits. It depends only on the time, so that the
// copy's goroutines do not affect each other.
func (d *day) jitter(length time.Duration) time.Duration {
	if length <= 0 {
		return 0
	}
	return time.Duration(d.chance(strconv.FormatInt(time.Now().UnixNano(), 10)).Int64N(int64(length)))
}

// live runs the day and the calm after it, and judges the result.
func (d *day) live(ctx context.Context, cancel func()) {
	random := d.chance("day")
	var workers []func(context.Context)
	workers = append(workers, d.write, d.read, d.inspect)
	for i := range 2 {
		f := d.follower(fmt.Sprintf("early %d", i))
		if i == 1 {
			f.pace = time.Duration(1+random.IntN(3000)) * time.Millisecond
		}
		d.copy.follow(f)
	}
	stalled := d.follower("stalled")
	stalled.stallAt = time.Now().Add(time.Duration(random.Int64N(int64(length))))
	stalled.stallFor = time.Duration(random.Int64N(int64(length)))
	d.copy.follow(stalled)
	gone := d.follower("gone early")
	leave := d.copy.follow(gone)

	stopped := make(chan struct{})
	go func() { defer close(stopped); d.copy.run(ctx) }()
	for _, w := range workers {
		go w(ctx)
	}
	at := func(f func()) { time.AfterFunc(time.Duration(random.Int64N(int64(length))), f) }
	at(func() { leave() })
	at(func() { d.copy.follow(d.follower("late")) })

	time.Sleep(length + calm)
	d.judge()
	asked := time.Now()
	cancel()
	<-stopped
	if took := time.Since(asked); took > time.Second+stalled.pace {
		d.record.violate("copy", "it stops", "took %s", took)
	}
}

func (d *day) follower(name string) *follower {
	f := newFollower(name, d.record, d.chance(name).Uint64())
	f.rewinds = func() int64 { return d.copy.health().Rewinds }
	return f
}

// write changes the server at random, and compacts, restarts and restores it.
func (d *day) write(ctx context.Context) {
	random := d.chance("writer")
	names := strings.Fields("ant bee cat dog elk fox gnu hen ibis jay")
	for left := d.cfg.Writes; left > 0 && ctx.Err() == nil; left-- {
		time.Sleep(time.Duration(random.Int64N(2 * int64(length) / int64(d.cfg.Writes))))
		name := names[random.IntN(len(names))]
		switch n := random.IntN(100); {
		case n < 70:
			d.server.Put(name, n < 2)
		case n < 95:
			d.server.Delete(name)
		case n < 98:
			d.server.Compact(random.IntN(10))
		default:
			d.server.Restart()
		}
		// A short time apart, so that the order of the write and its event does not
		// depend on the scheduler.
		time.Sleep(time.Microsecond)
		d.maybeRestore(left)
	}
}

// maybeRestore restores an older state of the server, if the plan says so, so old that
// the server cannot reach again the version that the copy has seen: a server that has
// passed it looks like one that never went back. A read that is under way counts as seen,
// up to an unknown version.
func (d *day) maybeRestore(left int) {
	back, ok := d.plan.Rewind("model", d.server.Version()-1)
	seen, known := d.seen()
	if !ok || !known {
		return
	}
	if to := min(d.server.Version()-back, seen-left-1); to >= 1 {
		d.server.Restore(to)
	}
}

func (d *day) seenByCopy() (int, bool) {
	seen, err := strconv.Atoi(string(d.copy.version()))
	return seen, err == nil && d.copy.health().State != tarn.StateListing
}

// sometimes calls f at random moments of the day.
func (d *day) sometimes(ctx context.Context, who string, mean time.Duration, f func()) {
	random := d.chance(who)
	for ctx.Err() == nil && time.Now().Before(d.end) {
		time.Sleep(time.Duration(random.Int64N(2 * int64(mean))))
		f()
	}
}

// read reads the copy as its users do.
func (d *day) read(ctx context.Context) {
	d.sometimes(ctx, "reader", 7*time.Second, func() {
		if content, ok := d.copy.read(); !ok {
			d.record.violate("reader", "reads do not wait for writes", "saw a mix of states: %s", content)
		}
	})
}

// inspect checks the copy's Health.
func (d *day) inspect(ctx context.Context) {
	d.sometimes(ctx, "inspector", 5*time.Second, func() {
		d.checkBacklog()
		d.checkFreshness()
	})
}
