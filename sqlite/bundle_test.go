package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// bundleRig is a sink without a replica.
type bundleRig struct {
	testing.TB
	dir  string
	opts Options
	db   *DB
	sink *Sink[thing]
	// want is the content, at the version n.
	want map[tarn.Key]int
	n    int
}

func newBundleRig(t testing.TB, opts Options) *bundleRig {
	r := &bundleRig{TB: t, dir: directory(t), opts: opts, want: map[tarn.Key]int{}}
	r.open()
	return r
}

func (r *bundleRig) open() {
	r.Helper()
	r.db = open(r, r.dir, r.opts)
	r.sink = &Sink[thing]{store: openStore(r, r.db)}
}

func (r *bundleRig) reopen() {
	r.Helper()
	must(r, r.db.Close())
	r.open()
}

// try commits changes.
func (r *bundleRig) try(whole bool, changes ...tarn.Change[thing]) error {
	at := tarn.At(tarn.Version(fmt.Sprint(r.n + 1)))
	at.Complete = true
	return r.sink.Commit(r.Context(), tarn.Batch[thing]{Changes: changes, Whole: whole, Positions: []tarn.Position{at}, LastContact: time.Now()})
}

func (r *bundleRig) commit(whole bool, changes ...tarn.Change[thing]) {
	r.Helper()
	must(r, r.try(whole, changes...))
	r.n++
	if whole {
		clear(r.want)
	}
	for _, c := range changes {
		if c.Type == tarn.Delete {
			delete(r.want, c.Key)
		} else {
			r.want[c.Key] = c.Object.N
		}
	}
}

// fill begins with so many objects.
func (r *bundleRig) fill(n int) {
	r.Helper()
	var all []tarn.Change[thing]
	for i := range n {
		all = append(all, put(fmt.Sprintf("ns/%04d", i), i))
	}
	r.commit(true, all...)
}

// load compares what a start finds with what there should be, and returns how many bundles it
// read.
func (r *bundleRig) load() (bundles int) {
	r.Helper()
	all, bundles, err := r.sink.store.tryLoad(r.Context(), true)
	must(r, err)
	r.compare(all.items)
	if report, err := Check(r.Context(), r.dir, r.opts.Key); err != nil || !report.OK() {
		r.Errorf("check: %v, %v", report, err)
	}
	return bundles
}

func (r *bundleRig) compare(items []tarn.Change[thing]) {
	r.Helper()
	got := map[tarn.Key]int{}
	for _, c := range items {
		got[c.Key] = c.Object.N
	}
	if len(items) != len(r.want) || !maps.Equal(got, r.want) {
		r.Errorf("%d objects are loaded, %v, want %v", len(items), got, r.want)
	}
}

// stored are the bundles in the file.
func (r *bundleRig) stored() map[int64][]byte {
	r.Helper()
	r.db.mu.Lock() // the log is emptied a minute after a write
	defer r.db.mu.Unlock()
	all := map[int64][]byte{}
	must(r, query(r.db.writer, "SELECT span, body FROM tarn_bundles", func(row *sqlite3.Stmt) error {
		all[row.ColumnInt64(0)] = row.ColumnBlob(1, nil)
		return nil
	}))
	return all
}

// A load finds the same objects in bundles as in rows, whatever was written since.
func TestBundlesHaveWhatRowsHave(t *testing.T) {
	for name, opts := range map[string]Options{"plain": {}, "encrypted": {Key: bytes.Repeat([]byte{7}, keySize)}} {
		t.Run(name, func(t *testing.T) {
			r := newBundleRig(t, opts)
			r.fill(300)
			if got := r.load(); got != 5 {
				t.Errorf("a load reads %d bundles after the first state, want 5", got)
			}
			random := rand.New(rand.NewPCG(1, 2))
			bundles := 0
			for range 25 {
				var changes []tarn.Change[thing]
				for range 1 + random.IntN(4) {
					key := fmt.Sprintf("ns/%04d", random.IntN(600))
					if random.IntN(3) == 0 {
						changes = append(changes, gone(key))
					} else {
						c := put(key, random.IntN(1000))
						c.Object.Pad = strings.Repeat("padding ", random.IntN(400))
						changes = append(changes, c)
					}
				}
				r.commit(random.IntN(12) == 0, changes...)
				if random.IntN(3) == 0 {
					_, err := r.sink.store.c.makeBundles(0, 1+random.IntN(10))
					must(t, err)
				}
				if random.IntN(5) == 0 {
					r.reopen()
				}
				bundles += r.load()
			}
			if bundles == 0 {
				t.Error("no bundle was ever read")
			}
		})
	}
}

// A write deletes only the bundle of its span.
func TestAWriteEndsABundle(t *testing.T) {
	for name, change := range map[string]tarn.Change[thing]{
		"update": put("ns/0070", -1), "delete": gone("ns/0070"), "insert into the last span": put("ns/0000a", -1),
	} {
		r := newBundleRig(t, Options{})
		r.fill(300)
		r.commit(false, change)
		if got := r.load(); got != 4 {
			t.Errorf("%s: a load reads %d bundles, want 4", name, got)
		}
	}
}

// A transaction that fails keeps the bundles, and the next one deletes them.
func TestBundlesAfterAFailedWrite(t *testing.T) {
	r := newBundleRig(t, Options{})
	r.fill(300)
	pages, err := number(r.db.writer, "PRAGMA page_count")
	must(t, err)
	must(t, r.db.writer.Exec(fmt.Sprintf("PRAGMA max_page_count=%d", pages+1)))
	large := put("ns/large", 1)
	for i := range 20_000 {
		large.Object.Pad += fmt.Sprint(i * i)
	}
	if err := r.try(false, put("ns/0070", -1), large); !errors.Is(err, sqlite3.FULL) {
		t.Fatalf("a write beyond the last page: %v", err)
	}
	if got := r.load(); got != 5 {
		t.Errorf("after a failed write, a load reads %d bundles, want 5", got)
	}
	must(t, r.db.writer.Exec("PRAGMA max_page_count=1000000"))
	r.commit(false, put("ns/0070", -1))
	if got := r.load(); got != 4 {
		t.Errorf("after the next write, a load reads %d bundles, want 4", got)
	}
}

// Bundles that do not fit the rows are found, not used, and removed.
func TestBundlesThatDoNotFit(t *testing.T) {
	const insert = "INSERT INTO tarn_bundles (collection, span, body) VALUES (1, ?, ?)"
	for name, spoil := range map[string]func(r *bundleRig){
		"of an earlier state": func(r *bundleRig) {
			before := r.stored()[1]
			r.commit(false, put("ns/0070", -1))
			must(r, execute(r.db.writer, insert, 1, before))
		},
		"with a deleted object": func(r *bundleRig) {
			before := r.stored()[1]
			r.commit(false, gone("ns/0070"))
			must(r, execute(r.db.writer, insert, 1, before))
		},
		"of another span": func(r *bundleRig) {
			must(r, execute(r.db.writer, "UPDATE tarn_bundles SET body=? WHERE span=2", r.stored()[1]))
		},
		"of a span without rows": func(r *bundleRig) {
			var b bundle
			b.add(bundled{id: 99, key: "ns/stray", plain: []byte(`{"Name":"stray"}`)})
			bundler, err := newBundler()
			must(r, err)
			for _, span := range []int64{-1 << 60, -1, 77, 1 << 60} {
				stored, err := r.sink.store.c.packer.packBundle(bundler, span, b.bytes())
				must(r, err)
				must(r, execute(r.db.writer, insert, span, stored))
			}
		},
		"damaged": func(r *bundleRig) {
			raw := r.stored()[1]
			raw[len(raw)/2] ^= 1
			must(r, execute(r.db.writer, "UPDATE tarn_bundles SET body=? WHERE span=1", raw))
		},
		"empty": func(r *bundleRig) { must(r, r.db.writer.Exec("UPDATE tarn_bundles SET body=x'' WHERE span=1")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newBundleRig(t, Options{})
			r.fill(300)
			spoil(r)
			if report, err := Check(t.Context(), r.dir, nil); err != nil || report.OK() {
				t.Errorf("check finds nothing: %v, %v", report, err)
			}
			r.reopen()
			items, err := r.sink.Load(t.Context())
			must(t, err)
			r.compare(items)
			if n := len(r.stored()); n != 0 {
				t.Errorf("%d bundles are left", n)
			}
			if got := r.load(); got != 0 {
				t.Errorf("a load reads %d bundles that are gone", got)
			}
			if all := reports(t, r.dir); len(all) > 0 {
				t.Errorf("the file was replaced: %v", all)
			}
		})
	}
}

// Objects are loaded even if SQLite can read no bundle.
func TestBundlesThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *bundleRig)
		// count is the error of counting the bundles after the start.
		count error
	}{
		"the first one is too long": {spoil: func(r *bundleRig) {
			r.db.writer.Limit(sqlite3.LIMIT_LENGTH, 1<<30)
			must(r, execute(r.db.writer, "UPDATE tarn_bundles SET body=zeroblob(?) WHERE span=0", 2*largestObject))
		}},
		"the root of their table is damaged": {count: sqlite3.CORRUPT, spoil: func(r *bundleRig) {
			root, err := number(r.db.writer, "SELECT rootpage FROM sqlite_schema WHERE name='tarn_bundles'")
			must(r, err)
			must(r, r.db.Close())
			f, err := os.OpenFile(filepath.Join(r.dir, fileName), os.O_WRONLY, 0)
			must(r, err)
			_, err = f.WriteAt(make([]byte, pageSize), (root-1)*pageSize)
			must(r, errors.Join(err, f.Close()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBundleRig(t, Options{})
			r.fill(300)
			c.spoil(r)
			r.reopen()
			items, err := r.sink.Load(t.Context())
			must(t, err)
			r.compare(items)
			if all := reports(t, r.dir); len(all) > 0 {
				t.Errorf("the start replaced the file: %v", all)
			}
			left, err := number(r.db.writer, "SELECT count(body) FROM tarn_bundles")
			if left > 0 || !errors.Is(err, c.count) {
				t.Errorf("after the start %d bundles are left, %v, want none, %v", left, err, c.count)
			}
		})
	}
}

// Any bytes are a bundle or an error.
func FuzzBundle(f *testing.F) {
	var b bundle
	b.add(bundled{id: 65, key: "ns/a", plain: []byte("one")})
	b.add(bundled{id: 66, key: "ns/b", plain: []byte("two")})
	f.Add(b.bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var again bundle
		err := readBundle(1, raw, func(o bundled) error {
			if spanOf(o.id) != 1 {
				t.Errorf("an object of the span %d", spanOf(o.id))
			}
			again.add(o)
			return nil
		})
		if err != nil {
			return
		}
		var third bundle
		must(t, readBundle(1, again.bytes(), func(o bundled) error { third.add(o); return nil }))
		if !bytes.Equal(third.bytes(), again.bytes()) {
			t.Error("a bundle is not read as it was written")
		}
	})
}

// A span that is not written for a while gets a bundle again. If a replica starts from rows
// only, all spans get one.
func TestSpansAreBundledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBundleRig(t, Options{})
		r.fill(300)
		r.commit(false, put("ns/0070", -1))
		expect := func(want int, when string) {
			t.Helper()
			if got := len(r.stored()); got != want {
				t.Errorf("there are %d bundles %s, want %d", got, when, want)
			}
		}
		time.Sleep(bundleAfter - time.Second)
		r.commit(false, put("ns/0200", -1))
		expect(3, "before the time")
		time.Sleep(time.Second)
		r.commit(false)
		expect(4, "after the time")
		must(t, r.sink.store.dropBundles())
		r.reopen()
		r.commit(false)
		expect(0, "at the start")
		time.Sleep(bundleAfter)
		r.commit(false)
		expect(5, "later")
		if got := r.load(); got != 5 {
			t.Errorf("a load reads %d bundles", got)
		}
		must(t, r.db.Close())
	})
}

// While a reader keeps the log from being emptied, bundles leave room in it for changes.
func TestBundlesLeaveRoomInTheLog(t *testing.T) {
	r := newBundleRig(t, Options{LogLimit: 1 << 20})
	random := rand.New(rand.NewPCG(1, 1))
	var changes []tarn.Change[thing]
	for i := range 2500 {
		c := put(fmt.Sprintf("ns/%04d", i), i)
		for range 100 {
			c.Object.Pad += fmt.Sprintf("%016x", random.Uint64())
		}
		changes = append(changes, c)
	}
	r.commit(true, changes...)
	if got := r.load(); got != 39 {
		t.Errorf("a load reads %d bundles after the first state, want 39", got)
	}
	must(t, r.sink.store.dropBundles())
	must(t, r.db.log.empty(r.db.writer))
	reader, err := r.db.openReader()
	must(t, err)
	defer closeAll(reader)
	must(t, pinSnapshot(reader))
	for made := 1; made > 0; {
		made, err = r.sink.store.c.makeBundles(0, bundlesPerCommit)
		must(t, err)
	}
	r.commit(false, put("ns/0000", -1))
	must(t, reader.Exec("COMMIT"))
	r.sink.store.bundle(true)
	if got := r.load(); got != 39 {
		t.Errorf("a load reads %d bundles after the reader has ended, want 39", got)
	}
}

// openOldBundles opens a directory of an older format, which has 100 objects.
func openOldBundles(t *testing.T, format int) *bundleRig {
	t.Helper()
	r := &bundleRig{TB: t, dir: oldDirectory(t, format), want: map[tarn.Key]int{}, n: 1}
	for i := range 100 {
		r.want[tarn.Key(fmt.Sprintf("ns/%04d", i))] = i
	}
	r.open()
	return r
}

// A directory of format 10 has no bundles. Its content is used, and is bundled later.
func TestDirectoryOfFormat10(t *testing.T) {
	r := openOldBundles(t, 10)
	if got := r.load(); got != 0 {
		t.Errorf("a load reads %d bundles", got)
	}
	r.commit(false, put("ns/0000", -1))
	_, err := r.sink.store.c.makeBundles(0, 10)
	must(t, err)
	r.reopen()
	if got := r.load(); got != 2 {
		t.Errorf("later a load reads %d bundles, want 2", got)
	}
}
