package sqlite

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
	"github.com/tarnproject/tarn/internal/sim"
	"github.com/tarnproject/tarn/internal/testsize"
	"github.com/tarnproject/tarn/memory"
)

var (
	days     = testsize.Flag("days", 8, 2, "how many days TestDays simulates")
	firstDay = flag.Uint64("first", 1, "the seed of the first of them")
)

// TestDays simulates bad days: a server that is written, compacted, restarted and
// restored, a connection with the faults of package faults, a disk that is full or
// fails for a while, and processes that keep a replica on it, with a copy in memory or
// without, and end normally, by a kill, or by a power loss.
//
// Each process must leave a state that the server had, with its version, and its
// handler must see a history without gaps. After the faults, the copy, the handler and
// the disk must equal the server.
func TestDays(t *testing.T) {
	seen := map[string]int{}
	for seed := *firstDay; seed < *firstDay+uint64(days()); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newDay(t, seed, seen).pass() })
		})
		if t.Failed() {
			t.Fatalf("seed %d failed: go test ./sqlite -run TestDays -days 1 -first %d", seed, seed)
		}
	}
	t.Logf("%v", seen)
	for _, what := range []string{"resumed", "listed", "killed", "power lost", "disk failed", "with history"} {
		if seen[what] == 0 && days() > 5 {
			t.Errorf("no life was ever %s: it is not tested", what)
		}
	}
}

// day is one of them.
type day struct {
	t      *testing.T
	random *rand.Rand
	server *sim.Server
	plan   *faults.Plan
	source tarn.Source[*sim.Object]
	disk   *badDisk
	opts   Options
	dir    string
	// only says that there is no memory in front.
	only bool
	// exact says that the connection loses no events, so that every state is one that
	// the server had; restores that the server may be restored from a backup.
	exact, restores bool
	left            int
	seen            map[string]int
	// logBegan is the version that was first left with a history.
	logBegan int
}

const (
	dayLength = 10 * time.Minute
	calm      = 25 * time.Minute
	writes    = 300
)

func newDay(t *testing.T, seed uint64, seen map[string]int) *day {
	d := &day{t: t, random: rand.New(rand.NewPCG(seed, 5)), server: sim.NewServer(), dir: directory(t), left: writes, seen: seen}
	d.disk, d.opts = newBadDisk(t)
	d.only, d.exact, d.restores = d.random.IntN(2) == 0, d.random.IntN(3) > 0, d.random.IntN(3) == 0
	d.opts.GroupDelay = time.Duration(1+d.random.IntN(3000)) * time.Millisecond
	if rand.New(rand.NewPCG(seed, 6)).IntN(3) > 0 {
		d.opts.History = History{Age: 100 * time.Hour}
	}
	mix := faults.Random(seed).Mix()
	if d.exact {
		for _, kind := range []faults.Kind{faults.Reorder, faults.Undecodable, faults.Bad, faults.Corrupt, faults.Oversize} {
			delete(mix, kind)
		}
	}
	d.plan = faults.New(seed, mix).Until(time.Now().Add(dayLength))
	d.source = faults.Source(tarn.Source[*sim.Object](d.server), d.plan, faults.SourceOptions[*sim.Object]{})
	return d
}

func (d *day) pass() {
	end := time.Now().Add(dayLength)
	for time.Now().Before(end) && !d.t.Failed() {
		l := d.begin()
		if l == nil {
			time.Sleep(time.Second) // a supervisor tries again
			continue
		}
		for stop := time.Now().Add(time.Duration(d.random.IntN(int(3 * time.Minute)))); time.Now().Before(stop); {
			d.trouble(l)
		}
		d.finish(l)
		for range d.random.IntN(6) {
			d.write()
		}
	}
	d.plan.End()
	d.disk.failing(nil)
	d.checkEnd()
}

// trouble is what happens in some seconds of a life.
func (d *day) trouble(l *lifetime) {
	time.Sleep(time.Duration(d.random.IntN(int(4 * time.Second))))
	d.write()
	switch d.random.IntN(16) {
	case 0:
		failure := []error{sqlite3.FULL, sqlite3.IOERR_WRITE, sqlite3.IOERR_FSYNC}[d.random.IntN(3)]
		good, random := d.random.IntN(40), rand.New(rand.NewPCG(d.random.Uint64(), 1))
		d.seen["disk failed"]++
		d.disk.failing(func(op, name string) error {
			if good--; good >= 0 || random.IntN(3) == 0 {
				return nil
			}
			return failure
		})
	case 1, 2:
		d.disk.failing(nil)
	case 3:
		d.maybeRestore(l)
	}
}

func (d *day) write() {
	if d.left--; d.left < 0 {
		return
	}
	name := strings.Fields("ant bee cat dog elk fox gnu hen ibis jay")[d.random.IntN(10)]
	switch n := d.random.IntN(100); {
	case n < 65:
		d.server.Put(name, false)
	case n < 92:
		d.server.Delete(name)
	case n < 97:
		d.server.Compact(d.random.IntN(8))
	default:
		d.server.Restart()
	}
}

// maybeRestore takes the server so far back that it will not reach the version of the copy
// again, nor that on disk, which is of another time while the disk fails: a server that has
// passed a version looks like one that never went back.
func (d *day) maybeRestore(l *lifetime) {
	onDisk, err1 := strconv.Atoi(string(l.disk.Disk().Version))
	inCopy, err2 := strconv.Atoi(string(l.Version()))
	if !d.restores || err1 != nil || err2 != nil || l.Health().State == tarn.StateListing {
		return
	}
	if to := min(d.server.Version()-1-d.random.IntN(10), min(onDisk, inCopy)-max(d.left, 0)-1); to >= 1 {
		d.server.Restore(to)
		d.seen["restored"]++
	}
}

// lifetime is one process.
type lifetime struct {
	*tarn.Replica[*sim.Object]
	db     *DB
	disk   tarn.DiskReporter
	cancel context.CancelFunc

	mu     sync.Mutex
	mirror map[tarn.Key]tarn.Version
}

// begin starts a process; nil if the disk does not let it.
func (d *day) begin() *lifetime {
	db, err := Open(d.dir, d.opts)
	if err != nil {
		d.refused(err)
		return nil
	}
	s, err := newStore(db, Collection{Name: "objects", Identity: "day"}, objectCodec{}, d.history())
	if err != nil {
		d.refused(err)
		_ = db.Close() // the disk fails
		return nil
	}
	l := &lifetime{db: db, disk: s, mirror: map[tarn.Key]tarn.Version{}}
	store, sinks := tarn.ReadStore[*sim.Object](s), []tarn.Sink[*sim.Object](nil)
	if !d.only {
		store, sinks = memory.New[*sim.Object](), []tarn.Sink[*sim.Object]{&Sink[*sim.Object]{store: s}}
	}
	size := d.random.Int64N(4)
	l.Replica, err = tarn.NewReplica(d.source, store, tarn.Options[*sim.Object]{
		Name: "objects", Sinks: sinks, Logger: quiet, WatchList: d.random.IntN(2) == 0, PageSize: func() int64 { return size },
		OnError: func(context.Context, error) {}, OnBad: func(context.Context, tarn.BadObject) {},
	})
	must(d.t, err)
	_, err = l.Subscribe(func(c tarn.Change[*sim.Object]) { d.take(l, c) }, tarn.SubscribeOptions{Bound: 8})
	must(d.t, err)
	ctx, cancel := context.WithCancel(d.t.Context())
	l.cancel = cancel
	go func() { _ = l.Run(ctx) }()
	return l
}

// history is that of a copy in memory; a copy on disk only has none.
func (d *day) history() History {
	if d.only {
		return History{}
	}
	return d.opts.History
}

// refused checks that a disk was at fault.
func (d *day) refused(err error) {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	if d.disk.fail == nil {
		d.t.Errorf("a disk in good order was refused: %v", err)
	}
	d.disk.fail = nil
}

// take is the handler.
func (d *day) take(l *lifetime, c tarn.Change[*sim.Object]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, present := l.mirror[c.Key]
	switch c.Type {
	case tarn.Add:
		if present {
			d.t.Errorf("add of %v, which the handler has at %s", c.Object, before)
		}
	case tarn.Update:
		if !present || c.Old.Version != before {
			d.t.Errorf("update of %v to %v, and the handler has %q", c.Old, c.Object, before)
		}
	case tarn.Delete:
		if !present {
			d.t.Errorf("delete of %v, which the handler does not have", c.Object)
		}
		delete(l.mirror, c.Key)
		return
	}
	l.mirror[c.Key] = c.Object.Version
}

// finish ends a process, in one of the ways in which they end.
func (d *day) finish(l *lifetime) {
	synctest.Wait()
	d.sameForHandler(l)
	h := l.Health()
	switch lists := len(h.Lists); {
	case lists > 0:
		d.seen["listed"]++
	case h.Synced:
		d.seen["resumed"]++
	}
	next := d.dir
	switch n := d.random.IntN(4); {
	case n == 0 && !d.restores: // the lost write may be the one after the restore
		d.seen["power lost"]++
		next = directory(d.t)
		d.disk.powerLoss(d.t, d.dir, next, d.random)
	case n < 3:
		d.seen["killed"]++
		next = copyOf(d.t, d.dir)
	default:
		d.seen["ended"]++
	}
	l.cancel()
	<-l.Done()
	_ = l.db.Close() // the disk may fail
	if next != d.dir {
		d.dir = next
		d.disk.settle(d.t, next)
	}
	d.verify(copyOf(d.t, d.dir))
}

func (d *day) sameForHandler(l *lifetime) {
	d.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := versionsOf(maps.Collect(l.All())); !maps.Equal(got, l.mirror) {
		d.t.Errorf("the copy has %v, the handler %v", got, l.mirror)
	}
}

func versionsOf(s map[tarn.Key]*sim.Object) map[tarn.Key]tarn.Version {
	all := map[tarn.Key]tarn.Version{}
	for key, o := range s {
		all[key] = o.Version
	}
	return all
}

// verify looks at what a process left.
func (d *day) verify(dir string) (at tarn.Version, content map[tarn.Key]tarn.Version) {
	d.t.Helper()
	db := open(d.t, dir, Options{})
	defer db.Close()
	s, err := newStore(db, Collection{Name: "objects", Identity: "day"}, objectCodec{}, d.history())
	must(d.t, err)
	all, _, err := s.tryLoad(d.t.Context(), true)
	if err != nil || len(reports(d.t, dir)) > 0 {
		d.t.Errorf("what was left is damaged: %v", err)
	}
	content = map[tarn.Key]tarn.Version{}
	for _, c := range all.items {
		content[c.Key] = c.Object.Version
	}
	if all.whole && all.version != "" {
		if d.logBegan == 0 {
			d.logBegan = mustInt(all.version)
		}
		d.verifyLog(dir, db, all.version, content)
	}
	if !d.exact || !all.whole || all.version == "" {
		return all.version, content
	}
	for _, m := range d.server.Past() {
		if strconv.Itoa(m.Version) == string(all.version) && maps.Equal(content, versionsOf(m.State)) {
			return all.version, content
		}
	}
	d.t.Errorf("at version %s the disk has %v, which the server never had", all.version, content)
	return all.version, content
}

// checkEnd runs a last process without faults, and compares.
func (d *day) checkEnd() {
	l := d.begin()
	if l == nil {
		d.t.Fatal("the last process could not begin")
	}
	time.Sleep(calm)
	synctest.Wait()
	want := versionsOf(d.server.State())
	if h := l.Health(); !h.Synced || h.Err != nil || h.Disk.Err != nil || h.FromDisk {
		d.t.Errorf("a while after the troubles it is not well: %s, %v", h, h.Disk)
	}
	if got := versionsOf(maps.Collect(l.All())); !maps.Equal(got, want) {
		d.t.Errorf("the copy has %v, the server %v", got, want)
	}
	d.sameForHandler(l)
	at := l.Version()
	l.cancel()
	<-l.Done()
	must(d.t, l.db.Close())
	if v, got := d.verify(d.dir); v != at || !maps.Equal(got, want) {
		d.t.Errorf("on disk is version %s with %v, the server has %v and the copy was at %s", v, got, want, at)
	}
}

// settle treats the files of a directory as synced.
func (d *badDisk) settle(t testing.TB, dir string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, raw := range filesOf(t, dir) {
		d.durable[name] = raw
	}
}

// objectCodec writes the simulation's objects.
type objectCodec struct{}

func (objectCodec) Append(buf []byte, o *sim.Object) ([]byte, error) {
	raw, err := json.Marshal(o)
	return append(buf, raw...), err
}

func (objectCodec) Decode(raw []byte) (*sim.Object, error) {
	o := &sim.Object{}
	return o, json.Unmarshal(raw, o)
}

func (objectCodec) Schema() string { return "objects" }
