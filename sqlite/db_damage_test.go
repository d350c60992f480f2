package sqlite

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// fillFile makes a file with n objects, and closes it.
func fillFile(t testing.TB, dir string, n int) map[tarn.Key]int {
	t.Helper()
	db := open(t, dir, Options{})
	s := openStore(t, db)
	want := map[tarn.Key]int{}
	random := rand.New(rand.NewPCG(1, 1))
	var changes []tarn.Change[thing]
	for i := range n {
		c := put("ns/"+strconv.Itoa(i), i)
		pad := make([]byte, 200+random.IntN(400))
		for j := range pad {
			pad[j] = 'a' + byte(random.IntN(26)) // cannot be compressed away
		}
		c.Object.Pad = string(pad)
		changes, want[c.Key] = append(changes, c), i
	}
	must(t, s.Apply(changes, tarn.At(tarn.Version(strconv.Itoa(n)))))
	must(t, db.Close())
	return want
}

// reports are the names of the reports about damaged files.
func reports(t testing.TB, dir string) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, reportPrefix+"*"))
	must(t, err)
	return names
}

// A file with any bytes changed can be opened again: with its content, or empty with a
// report of the damage, but never with other content.
func TestDamage(t *testing.T) {
	whole := directory(t)
	want := fillFile(t, whole, 200)
	raw, err := os.ReadFile(filepath.Join(whole, fileName))
	must(t, err)
	type damage struct {
		name string
		do   func(random *rand.Rand, b []byte) []byte
	}
	kinds := []damage{
		{"a bit", func(random *rand.Rand, b []byte) []byte { b[random.IntN(len(b))] ^= 1 << random.IntN(8); return b }},
		{"a bit of the first page", func(random *rand.Rand, b []byte) []byte { b[random.IntN(pageSize)] ^= 1 << random.IntN(8); return b }},
		{"a sector of zeros", func(random *rand.Rand, b []byte) []byte {
			at := random.IntN(len(b)/512) * 512
			clear(b[at : at+512])
			return b
		}},
		{"a page where another belongs", func(random *rand.Rand, b []byte) []byte {
			from, to := random.IntN(len(b)/pageSize), random.IntN(len(b)/pageSize)
			copy(b[to*pageSize:(to+1)*pageSize], b[from*pageSize:])
			return b
		}},
		{"the end cut off", func(random *rand.Rand, b []byte) []byte { return b[:random.IntN(len(b))] }},
		{"no database at all", func(random *rand.Rand, b []byte) []byte { return []byte(strings.Repeat("what? ", 2000)) }},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			rebuilt := 0
			for seed := range uint64(seeds()) {
				dir := directory(t) + strconv.Itoa(int(seed))
				must(t, os.Mkdir(dir, 0o700))
				must(t, os.WriteFile(filepath.Join(dir, fileName), kind.do(rand.New(rand.NewPCG(seed, 2)), append([]byte(nil), raw...)), 0o600))
				db, err := Open(dir, Options{Logger: quiet})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				b := follow(t, openStore(t, db))
				kept, err := b.Restore(t.Context())
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				switch kept.Version() {
				case "200":
					if got := content(b); !maps.Equal(got, want) {
						t.Errorf("seed %d: it was opened with %d objects that were not written so", seed, len(got))
					}
				case "":
					rebuilt++
					if len(content(b)) != 0 {
						t.Errorf("seed %d: there is no version, but content", seed)
					}
				default:
					t.Errorf("seed %d: it was opened at version %q", seed, kept.Version())
				}
				must(t, b.Apply([]tarn.Change[thing]{put("new", 1)}, tarn.At("201")))
				must(t, db.Close())
				b = follow(t, openStore(t, open(t, dir, Options{})))
				if kept, err := b.Restore(t.Context()); err != nil || kept.Version() != "201" {
					t.Errorf("seed %d: what was written afterwards is %+v, %v", seed, kept, err)
				}
			}
			if rebuilt == 0 && seeds() > 20 { // most bits of the first page mean nothing
				t.Error("no damage was ever noticed, so nothing was tested")
			}
		})
	}
}

// A file that breaks while it is in use is given up, and the new one gets all
// that memory has, of every collection.
func TestDamageWhileInUse(t *testing.T) {
	dir := directory(t)
	want := fillFile(t, dir, 400)
	db := open(t, dir, Options{})
	b := follow(t, openStore(t, db))
	other, err := NewStore(db, Collection{Name: "others"}, things{})
	must(t, err)
	o := follow(t, other)
	must(t, o.Apply([]tarn.Change[thing]{put("x", 1)}, tarn.At("1")))
	must(t, o.Flush())
	if _, err := b.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, db.writer.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
	name := filepath.Join(dir, fileName)
	raw, err := os.ReadFile(name)
	must(t, err)
	for at := pageSize; at < len(raw); at += 512 { // in place, as a disk does
		raw[at] ^= 0xff
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(raw[pageSize:], pageSize)
	must(t, err)
	must(t, f.Close())
	must(t, db.writer.ReleaseMemory())

	for i := range 3 * len(want) {
		key := "ns/" + strconv.Itoa(i%len(want))
		want[tarn.Key(key)] = i
		must(t, b.Apply([]tarn.Change[thing]{put(key, i)}, tarn.At("500")))
		if i%100 == 0 {
			must(t, b.Flush())
			must(t, o.Apply([]tarn.Change[thing]{put("x", i)}, tarn.At("2")))
			must(t, o.Flush())
		}
	}
	if n := len(reports(t, dir)); n == 0 || n > maxReports {
		t.Fatalf("there are %d reports of the damage", n)
	}
	must(t, db.Close())

	db = open(t, dir, Options{})
	expect(t, openStore(t, db), "500", want)
	other, err = NewStore(db, Collection{Name: "others"}, things{})
	must(t, err)
	expect(t, other, "2", map[tarn.Key]int{"x": 1100})
}
