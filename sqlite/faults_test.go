package sqlite

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// history writes states by seed and remembers each by its version.
type history struct {
	random *rand.Rand
	now    map[tarn.Key]int
	at     int
	states map[tarn.Version]map[tarn.Key]int
}

func newHistory(seed uint64) *history {
	return &history{random: rand.New(rand.NewPCG(seed, 3)), now: map[tarn.Key]int{}, states: map[tarn.Version]map[tarn.Key]int{"": {}}}
}

// step gives the changes to the next state.
func (h *history) step() ([]tarn.Change[thing], tarn.Version) {
	h.at++
	var changes []tarn.Change[thing]
	for range 1 + h.random.IntN(20) {
		key := "ns/" + strconv.Itoa(h.random.IntN(60))
		if h.random.IntN(4) == 0 {
			changes = append(changes, gone(key))
			delete(h.now, tarn.Key(key))
			continue
		}
		c := put(key, h.at)
		c.Object.Pad = strings.Repeat(strconv.Itoa(h.random.Int()), 1+h.random.IntN(100))
		changes = append(changes, c)
		h.now[c.Key] = h.at
	}
	v := tarn.Version(strconv.Itoa(h.at))
	h.states[v] = maps.Clone(h.now)
	return changes, v
}

// verify says what is wrong with a store that should have one of the states.
func (h *history) verify(t testing.TB, s *Store[thing]) tarn.Version {
	t.Helper()
	all, _, err := s.tryLoad(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if !all.whole && all.version != "" {
		t.Errorf("version %s is not whole", all.version)
	}
	got := map[tarn.Key]int{}
	for _, c := range all.items {
		got[c.Key] = c.Object.N
	}
	want, known := h.states[all.version]
	if !known || !maps.Equal(got, want) {
		t.Errorf("at version %q the file has %v, which the store had not: %v", all.version, got, want)
	}
	return all.version
}

// Whatever part of what was not synced a power loss leaves, the file opens and
// holds a state that there was, with its version.
func TestPowerLoss(t *testing.T) {
	lost := 0
	for seed := range 2 * uint64(seeds()) {
		disk, opts := newBadDisk(t)
		h := newHistory(seed)
		dir := directory(t)
		db := open(t, dir, opts)
		must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=20"))
		s := openStore(t, db)
		for range 1 + h.random.IntN(40) {
			changes, v := h.step()
			must(t, s.Apply(changes, tarn.At(v)))
		}
		after := directory(t)
		disk.powerLoss(t, dir, after, h.random)
		again, err := Open(after, Options{Logger: quiet})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if v := h.verify(t, openStore(t, again)); v != tarn.Version(strconv.Itoa(h.at)) {
			lost++
		}
		if n := len(reports(t, after)); n > 0 {
			t.Errorf("seed %d: a power loss was taken for damage", seed)
		}
		must(t, again.Close())
		must(t, db.Close())
	}
	if lost == 0 {
		t.Error("nothing was ever lost: the power was never off")
	}
}

// Writes that fail at any point leave the state before, and work again afterwards.
func TestFailingWrites(t *testing.T) {
	for _, failure := range []error{sqlite3.FULL, sqlite3.IOERR_WRITE, sqlite3.IOERR_FSYNC} {
		disk, opts := newBadDisk(t)
		h := newHistory(1)
		db := open(t, directory(t), opts)
		must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=10"))
		s := openStore(t, db)
		failed := 0
		for i := range 60 {
			changes, v := h.step()
			countdown := h.random.IntN(30)
			disk.failing(func(op, name string) error {
				if countdown--; countdown < 0 {
					return failure
				}
				return nil
			})
			err := s.Apply(changes, tarn.At(v))
			disk.failing(nil)
			if err != nil {
				failed++
				if !errors.Is(err, sqlite3.FULL) && !errors.Is(err, sqlite3.IOERR) {
					t.Errorf("step %d: %v", i, err)
				}
				h.verify(t, s)
				must(t, s.Apply(changes, tarn.At(v)))
			}
			expect(t, s, v, h.now)
		}
		if failed == 0 {
			t.Errorf("%v: nothing failed", failure)
		}
		must(t, db.Close())
	}
}

// A full disk leaves the replica in memory, and Health says so. The disk catches up when it
// has room again.
func TestAFullDiskIsNotInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, opts := newBadDisk(t)
		db := open(t, directory(t), opts)
		s := openStore(t, db)
		b := follow(t, s)
		h := newHistory(1)
		changes, first := h.step()
		must(t, b.Apply(changes, tarn.At(first)))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		before := maps.Clone(h.now)

		disk.failing(func(op, name string) error { return sqlite3.FULL })
		for range 100 {
			changes, v := h.step()
			must(t, b.Apply(changes, tarn.At(v)))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		expect(t, b, "101", h.now)
		expect(t, s, first, before)
		health := b.Disk()
		if !errors.Is(health.Err, sqlite3.FULL) || health.Pending == 0 || health.Pending > 60 || health.Lag < 90*time.Second || health.Version != first {
			t.Errorf("while the disk is full: %v", health)
		}
		disk.failing(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, s, "101", h.now)
		if health := b.Disk(); health.Err != nil || health.Pending != 0 {
			t.Errorf("when there is room again: %v", health)
		}
		must(t, db.Close())
	})
}

// A damaged file is built again when there is room, even if the disk is full or fills up
// while the new file is made, at whichever write.
func TestDamageOnAFullDisk(t *testing.T) {
	step := 1
	if raceEnabled {
		step = 4 // nothing runs beside it, and SQLite is slow then
	}
	for writes := 0; writes < 60; writes += step {
		writes := writes
		disk, opts := newBadDisk(t)
		dir := directory(t) + strconv.Itoa(writes)
		db := open(t, dir, opts)
		one, two := openTabular(t, db, "one"), openTabular(t, db, "two")
		a, b := follow(t, one), follow(t, two)
		must(t, a.Apply([]tarn.Change[thing]{put("x", 1)}, tarn.At("1")))
		must(t, b.Apply([]tarn.Change[thing]{put("y", 1)}, tarn.At("1")))
		must(t, errors.Join(a.Flush(), b.Flush()))
		one.suspicion.put(errBadRow)
		disk.failing(func(op, name string) error {
			if writes--; writes < 0 {
				return sqlite3.FULL
			}
			return nil
		})
		must(t, errors.Join(a.Apply(nil, tarn.At("1")), b.Apply(nil, tarn.At("1"))))
		for range 3 {
			_ = errors.Join(a.Flush(), b.Flush()) // it may be full before or after
		}
		disk.failing(nil)
		must(t, errors.Join(a.Flush(), b.Flush()))
		must(t, a.Apply([]tarn.Change[thing]{put("z", 1)}, tarn.At("2")))
		must(t, db.Close())
		db = open(t, dir, opts)
		expect(t, openTabular(t, db, "one"), "2", map[tarn.Key]int{"x": 1, "z": 1})
		expect(t, openTabular(t, db, "two"), "1", map[tarn.Key]int{"y": 1})
		must(t, db.Close())
	}
}
