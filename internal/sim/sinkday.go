package sim

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// life is one run of the process that has the replica.
type life struct {
	number int
	day    *day
	end    context.CancelFunc
	dead   atomic.Bool
}

// kill ends the life at once: what its goroutines still do has no effect.
func (l *life) kill(when string) {
	if l.dead.CompareAndSwap(false, true) {
		l.day.record.note("process", "is killed: %s", when)
		l.end()
	}
}

func (l *life) err() error {
	if l.dead.Load() {
		return errDead
	}
	return nil
}

// troubled says that the day is not over: sinks fail, and the process is killed.
func (d *day) troubled() bool { return time.Now().Before(d.end) }

// liveWithSinks lets the process live and die until the day is over, then once more
// through the calm, and judges what the sinks were given.
func (d *day) liveWithSinks(ctx context.Context) {
	random, sinks := d.chance("process"), d.newSinks()
	var running atomic.Pointer[tarn.Replica[*Object]] // nil while the process is dead
	d.seen = func() (int, bool) {
		all := versionsOf(sinks)
		if r := running.Load(); r != nil {
			if r.Health().State == tarn.StateListing {
				return 0, false
			}
			all = append(all, r.Version())
		}
		least := d.server.Version()
		for _, v := range all {
			if n, err := strconv.Atoi(string(v)); err == nil {
				least = min(least, n)
			}
		}
		return least, true
	}
	go d.write(ctx)
	for number := 1; ; number++ {
		lives := time.Duration(random.Int64N(int64(length / 3)))
		last := time.Now().Add(lives).After(d.end)
		if last {
			lives = time.Until(d.end.Add(calm))
		}
		l := &life{number: number, day: d}
		r := d.newProcess(l, sinks)
		running.Store(r)
		living, end := context.WithCancel(ctx)
		l.end = end
		done := make(chan struct{})
		go func() { defer close(done); _ = r.Run(living) }()
		d.record.note("process", "starts for %s", lives)
		select {
		case <-time.After(lives):
		case <-living.Done():
		}
		if last && !l.dead.Load() {
			d.judgeSinks(r, sinks)
		}
		if random.IntN(2) == 0 && !last {
			l.kill("its time has come")
		}
		asked := time.Now()
		end()
		<-done
		if took := time.Since(asked); took > 1100*time.Millisecond {
			d.record.violate("process", "it stops", "took %s", took)
		}
		d.record.note("process", "has ended")
		running.Store(nil)
		if last && !l.dead.Load() {
			break
		}
		if d.troubled() {
			time.Sleep(time.Duration(random.Int64N(int64(30 * time.Second))))
		}
	}
	for _, s := range sinks {
		d.judgeCommits(s)
	}
}

func versionsOf(sinks []*modelSink) (all []tarn.Version) {
	for _, s := range sinks {
		all = append(all, s.seen()...)
	}
	return all
}

// newProcess makes the replica of one life.
func (d *day) newProcess(l *life, sinks []*modelSink) *tarn.Replica[*Object] {
	random := d.chance("replica")
	size, watchList := random.Int64N(4), random.IntN(2) == 0
	opts := tarn.Options[*Object]{
		Name: "objects", WatchList: watchList, PageSize: func() int64 { return size },
		Transform: refusePoison, Jitter: d.jitter, Logger: slog.New(slog.DiscardHandler),
		OnError: func(_ context.Context, err error) { d.record.note("copy", "reports: %v", err) },
		OnBad: func(_ context.Context, b tarn.BadObject) {
			d.record.note("copy", "cannot take %q: %v", b.Key, b.Err)
		},
	}
	for _, s := range sinks {
		opts.Sinks = append(opts.Sinks, s.attach(l))
	}
	r, err := tarn.NewReplica(d.source(), tarn.ReadStore[*Object](memory.New[*Object]()), opts)
	if err != nil {
		panic(err)
	}
	return r
}
