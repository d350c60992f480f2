package sqlite

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// bundleModel writes two collections, with their bundles, in processes that end in any way.
type bundleModel struct {
	testing.TB
	rt   *rapid.T
	disk *badDisk
	opts Options
	dir  string
	db   *DB
	all  []*modelCollection
	// read counts the bundles that starts have read.
	read int
}

// modelCollection is a collection with every state that it had, by version.
type modelCollection struct {
	name, identity, epoch string
	sink                  *Sink[thing]
	now                   map[tarn.Key]int
	at                    int
	states                map[tarn.Version]map[tarn.Key]int
	// unwritten are the keys whose objects cannot be written: a start does not use the
	// content. Nor does it if the content is distrusted, or empty.
	unwritten         map[tarn.Key]bool
	distrusted, empty bool
}

func (c *modelCollection) version() tarn.Version { return tarn.Version(fmt.Sprint(c.at)) }

func (c *modelCollection) clear() {
	c.now, c.unwritten, c.distrusted, c.empty = map[tarn.Key]int{}, map[tarn.Key]bool{}, false, true
}

// Whatever is written, bundled, killed, dropped or out of room: a start loads a state that
// there was, with its version, and the same from bundles as from rows.
func TestBundlesModel(t *testing.T) {
	disk, opts := newBadDisk(t)
	read := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := &bundleModel{TB: t, rt: rt, disk: disk, opts: opts, dir: directory(t)}
		if rapid.Bool().Draw(rt, "encrypted") {
			m.opts.Key = bytes.Repeat([]byte{7}, keySize)
		}
		if rapid.Bool().Draw(rt, "history") {
			m.opts.History = History{Age: time.Hour}
		}
		for _, name := range []string{"one", "two"} {
			c := &modelCollection{name: name, states: map[tarn.Version]map[tarn.Key]int{}}
			c.clear()
			m.all = append(m.all, c)
		}
		m.open(false)
		defer func() { must(m, m.db.Close()) }()
		defer m.disk.failing(nil)
		for _, c := range m.all {
			m.write(c, true, 80)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write":             func(rt *rapid.T) { m.write(m.one(), false, rapid.IntRange(1, 6).Draw(rt, "changes")) },
			"whole":             func(rt *rapid.T) { m.write(m.one(), true, rapid.IntRange(0, 100).Draw(rt, "changes")) },
			"bundle":            func(*rapid.T) { m.bundle() },
			"no room":           func(*rapid.T) { m.noRoom() },
			"close":             func(*rapid.T) { must(m, m.db.Close()); m.open(false) },
			"kill":              func(*rapid.T) { m.moveTo(copyOf(t, m.dir), false) },
			"killed in a write": func(*rapid.T) { m.killInWrite() },
			"power loss":        func(*rapid.T) { m.powerLoss() },
			"other identity":    func(*rapid.T) { m.otherIdentity() },
			"distrust":          func(*rapid.T) { m.distrust() },
			"empty log":         func(*rapid.T) { m.db.emptyLog() },
		})
		if report, err := Check(t.Context(), m.dir, m.opts.Key); err != nil || !report.OK() {
			rt.Errorf("check: %v, %v", report, err)
		}
		read += m.read
	})
	if read == 0 {
		t.Error("no bundle was ever read")
	}
}

func (m *bundleModel) Errorf(format string, args ...any) { m.rt.Errorf(format, args...) }
func (m *bundleModel) Fatal(args ...any)                 { m.rt.Fatal(args...) }

func (m *bundleModel) one() *modelCollection {
	return m.all[rapid.IntRange(0, 1).Draw(m.rt, "collection")]
}

// open starts a process, and compares what each collection loads. lost says that the last
// commits may be missing.
func (m *bundleModel) open(lost bool) {
	m.Helper()
	m.db = open(m, m.dir, m.opts)
	for _, c := range m.all {
		m.openCollection(c)
		m.load(c, lost)
	}
	if all := reports(m, m.dir); len(all) > 0 {
		m.Errorf("the file was taken for damaged: %v", all)
	}
}

func (m *bundleModel) openCollection(c *modelCollection) {
	m.Helper()
	s, err := newStore(m.db, Collection{Name: c.name, Identity: c.identity}, things{}, m.opts.History)
	must(m, err)
	c.sink = &Sink[thing]{store: s}
}

func (m *bundleModel) load(c *modelCollection, lost bool) {
	m.Helper()
	kept, err := c.sink.Open(m.Context(), func() error { return nil })
	must(m, err)
	unused := c.empty || c.distrusted || len(c.unwritten) > 0
	if len(kept.Positions) == 0 {
		if !unused && !lost {
			m.Errorf("%s starts empty, and was at version %d", c.name, c.at)
		}
		c.clear()
		return
	}
	at := kept.Positions[0].Version
	want, known := c.states[at]
	if !known || !lost && (unused || at != c.version()) {
		m.Errorf("%s starts at version %s, and was at %d, unused: %v", c.name, at, c.at, unused)
	}
	for _, bundled := range []bool{true, false} {
		all, bundles, err := c.sink.store.tryLoad(m.Context(), bundled)
		must(m, err)
		got := map[tarn.Key]int{}
		for _, item := range all.items {
			got[item.Key] = item.Object.N
		}
		if len(got) != len(all.items) || !maps.Equal(got, want) || all.version != at {
			m.Errorf("%s loads %v at version %s, with bundles: %v; at %s it had %v", c.name, got, all.version, bundled, at, want)
		}
		m.read += bundles
	}
	c.clear()
	c.now, c.empty = maps.Clone(want), false
	_, err = fmt.Sscan(string(at), &c.at)
	must(m, err)
}

// write commits changes until the sink has taken them.
func (m *bundleModel) write(c *modelCollection, whole bool, n int) {
	m.Helper()
	b := m.batch(c, whole || c.empty, n)
	err := c.sink.Commit(m.Context(), b)
	for tries := 1; !tarn.Taken(err); tries++ {
		if tries == 3 {
			m.Fatal(err)
		}
		m.disk.failing(nil)
		b.Again = true
		err = c.sink.Commit(m.Context(), b)
	}
}

// batch makes the changes that lead to the next state.
func (m *bundleModel) batch(c *modelCollection, whole bool, n int) (b tarn.Batch[thing]) {
	if whole {
		c.clear()
	}
	c.at, c.empty, c.now = c.at+1, false, maps.Clone(c.now)
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(m.rt, "seed"), 1))
	for range n {
		change := put(fmt.Sprintf("ns/%03d", random.IntN(120)), c.at*1000+random.IntN(1000))
		delete(c.unwritten, change.Key)
		switch kind := random.IntN(100); {
		case kind < 25 && !whole:
			change.Type = tarn.Delete
		case kind < 27:
			change.Object.Pad = strings.Repeat("padding ", random.IntN(3000))
		case kind < 28 && random.IntN(10) == 0:
			change.Object.Name, c.unwritten[change.Key] = "unwritable", true
		}
		if change.Type == tarn.Delete || c.unwritten[change.Key] {
			delete(c.now, change.Key)
		} else {
			c.now[change.Key] = change.Object.N
		}
		change.Version, change.Heard = c.version(), time.Now()
		b.Changes = append(b.Changes, change)
	}
	c.states[c.version()] = c.now
	b.Whole, b.LastContact = whole, time.Now()
	b.Positions = []tarn.Position{{Epoch: c.epoch, Version: c.version(), Complete: true}}
	return b
}

func (m *bundleModel) bundle() {
	for _, c := range m.all {
		_, err := c.sink.store.c.makeBundles(0, rapid.IntRange(1, 6).Draw(m.rt, "spans"))
		must(m, err)
	}
}

// noRoom fills the disk while objects or bundles are written.
func (m *bundleModel) noRoom() {
	for range 3 {
		left := rapid.IntRange(0, 40).Draw(m.rt, "writes")
		m.disk.failing(func(string, string) error {
			if left--; left < 0 {
				return sqlite3.FULL
			}
			return nil
		})
		if c := m.one(); rapid.Bool().Draw(m.rt, "bundles") {
			_, _ = c.sink.store.c.makeBundles(0, 3) // it may fail
		} else {
			m.write(c, rapid.IntRange(0, 3).Draw(m.rt, "whole") == 0, rapid.IntRange(1, 60).Draw(m.rt, "changes"))
		}
		m.disk.failing(nil)
	}
}

// moveTo ends the process, and starts another one with what a kill has left.
func (m *bundleModel) moveTo(dir string, lost bool) {
	m.Helper()
	must(m, m.db.Close())
	must(m, os.RemoveAll(m.dir))
	m.dir = dir
	m.disk.forget()
	m.disk.settle(m, dir)
	m.open(lost)
}

// killInWrite kills the process while it writes objects or bundles.
func (m *bundleModel) killInWrite() {
	m.Helper()
	dir, left := directory(m), rapid.IntRange(0, 60).Draw(m.rt, "writes")
	must(m, os.Mkdir(dir, 0o700))
	take := func() {
		for name, raw := range filesOf(m, m.dir) {
			must(m, os.WriteFile(filepath.Join(dir, filepath.Base(name)), raw, 0o600))
		}
	}
	m.disk.failing(func(string, string) error {
		if left--; left == -1 {
			take()
		}
		return nil
	})
	for range 2 {
		m.write(m.one(), rapid.IntRange(0, 3).Draw(m.rt, "whole") == 0, rapid.IntRange(1, 60).Draw(m.rt, "changes"))
		m.bundle()
	}
	if m.disk.failing(nil); left >= 0 {
		take()
	}
	m.moveTo(dir, true)
}

func (m *bundleModel) powerLoss() {
	to := directory(m)
	m.disk.powerLoss(m, m.dir, to, rand.New(rand.NewPCG(rapid.Uint64().Draw(m.rt, "seed"), 2)))
	m.moveTo(to, true)
}

// otherIdentity opens a collection as the copy of something else.
func (m *bundleModel) otherIdentity() {
	c := m.one()
	c.sink.Close()
	c.identity += "x"
	m.openCollection(c)
	if all, _, err := c.sink.store.tryLoad(m.Context(), true); err != nil || len(all.items) > 0 {
		m.Errorf("a copy of something else begins with %d objects, %v", len(all.items), err)
	}
	c.clear()
}

// distrust finds that a collection is of another source, which is read now or after a kill.
func (m *bundleModel) distrust() {
	c := m.one()
	must(m, c.sink.SetLabel(c.epoch, true))
	c.distrusted, c.epoch = true, c.epoch+"x"
	if rapid.Bool().Draw(m.rt, "kill") {
		m.moveTo(copyOf(m, m.dir), false)
	} else {
		m.write(c, true, 60)
	}
}
