package sqlite

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// readHostile runs everything that reads a directory on a file that an attacker made:
// nothing panics, runs for ever, takes much memory, or returns an error of several
// lines; and a directory that was opened can be written.
func readHostile(t testing.TB, dir string) {
	t.Helper()
	start := time.Now()
	oneLine := func(what string, err error) {
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s says %q", what, err)
		}
	}
	grown := allocated(func() {
		_, err := Query(t.Context(), dir, "SELECT count(*), sum(length(meta)) FROM things JOIN things_labels USING (id)", Limits{Time: 200 * time.Millisecond})
		oneLine("Query", err)
		if v, err := OpenReader(dir, nil); err != nil {
			oneLine("NewView", err)
		} else {
			_, err := v.Walk(t.Context(), "things", func(e Entry) error { _, _ = e.Bytes(); return nil })
			oneLine("Walk", err)
			_ = v.Close() // it was only read
		}
		_, err = Check(t.Context(), dir, nil)
		oneLine("Check", err)
		// What is repaired, and what is not, can be opened.
		repaired := directory(t)
		must(t, os.Mkdir(repaired, 0o700))
		for name, raw := range filesOf(t, dir) {
			must(t, os.WriteFile(filepath.Join(repaired, filepath.Base(name)), raw, 0o600))
		}
		done, err := Repair(t.Context(), repaired, nil)
		oneLine("Repair", err)
		if err == nil && done.Changed {
			if r, err := Check(t.Context(), repaired, nil); err != nil || !r.OK() {
				t.Errorf("after the repair is found %+v, %v", r, err)
			}
		}
		for _, dir := range []string{dir, repaired} {
			openHostile(t, dir, oneLine)
		}
	})
	if took := time.Since(start); took > 60*time.Second { // some tenths of a second are expected
		t.Errorf("it took %v", took)
	}
	if grown > 1<<30 {
		t.Errorf("it took %d MiB of memory", grown>>20)
	}
}

func openHostile(t testing.TB, dir string, oneLine func(string, error)) {
	t.Helper()
	db, err := Open(dir, Options{Logger: quiet})
	if err != nil {
		oneLine("Open", err)
		return
	}
	defer db.Close()
	s, err := NewStore(db, Collection{Name: "things", Identity: "rich", Dictionary: richDictionary}, rich{})
	if err != nil {
		oneLine("NewStore", err)
		return
	}
	b := follow(t, s)
	_, err = b.Restore(t.Context())
	oneLine("Restore", err)
	must(t, b.Apply([]tarn.Change[thing]{put("new", 1)}, tarn.At("8")))
	if err := db.Flush(); err != nil {
		t.Errorf("what was opened cannot be written: %v", err)
	}
	_, err = db.Forget()
	oneLine("Forget", err)
	must(t, db.Close())
	if r, err := Check(t.Context(), dir, nil); err != nil || !r.OK() {
		// Damage in what nobody reads may be left, and is found.
		if err != nil {
			t.Errorf("what was written afterwards is found to be %v, %v", r, err)
		}
	}
}

// patched is a file of ours with some bytes changed: four bytes of the patch are a
// place and what is put there.
func patched(t testing.TB, template map[string][]byte, patch []byte) (dir string) {
	dir = directory(t)
	must(t, os.Mkdir(dir, 0o700))
	for name, raw := range template {
		raw = append([]byte(nil), raw...)
		for p := patch; len(p) >= 4 && len(raw) > 0; p = p[4:] {
			at := int(binary.LittleEndian.Uint32(append([]byte{p[0], p[1], p[2]}, 0)))
			raw[at%len(raw)] ^= p[3]
		}
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), raw, 0o600))
	}
	return dir
}

// unclosed is a directory as a kill leaves it, with a log.
func unclosed(t testing.TB) map[string][]byte {
	dir, _ := richDirectory(t, 12, nil)
	db := open(t, dir, Options{})
	s := openRich(t, db)
	must(t, s.Apply([]tarn.Change[thing]{put("ns/thing-1", 50), gone("ns/thing-2")}, tarn.At("7")))
	files := filesOf(t, copyOf(t, dir))
	must(t, db.Close())
	return files
}

// FuzzPatchedFile changes bytes of a file of ours, and of its log.
func FuzzPatchedFile(f *testing.F) {
	random := rand.New(rand.NewPCG(4, 2))
	for range 8 {
		patch := make([]byte, 4*(1+random.IntN(6)))
		for i := range patch {
			patch[i] = byte(random.Uint32())
		}
		f.Add(patch)
	}
	template := unclosed(f)
	f.Fuzz(func(t *testing.T, patch []byte) { readHostile(t, patched(t, template, patch)) })
}

// FuzzFile reads arbitrary bytes as a file.
func FuzzFile(f *testing.F) {
	small, _ := richDirectory(f, 2, nil)
	raw, err := os.ReadFile(filepath.Join(small, fileName))
	must(f, err)
	f.Add(raw)
	f.Add(raw[:pageSize])
	f.Add([]byte("SQLite format 3\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := directory(t)
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, fileName), raw, 0o600))
		readHostile(t, dir)
	})
}

// TestPatchedFiles is a short run of the same in make test.
func TestPatchedFiles(t *testing.T) {
	template := unclosed(t)
	for seed := range uint64(seeds()) * 4 {
		random := rand.New(rand.NewPCG(seed, 9))
		patch := make([]byte, 4*(1+random.IntN(10)))
		for i := range patch {
			patch[i] = byte(random.Uint32())
		}
		readHostile(t, patched(t, template, patch))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// What others put into a file does not run: neither views in the place of tables, nor
// triggers, nor columns that compute.
func TestHostileSchemas(t *testing.T) {
	const endless = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x) SELECT "
	template, _ := richDirectory(t, 5, nil)
	for name, statements := range map[string]string{
		"tarn_format is a view":      "DROP TABLE tarn_format; CREATE VIEW tarn_format AS " + endless + "'format' AS name, max(n) AS value FROM x",
		"tarn_collections is a view": "DROP TABLE tarn_collections; CREATE VIEW tarn_collections AS " + endless + "1 AS id, 'things' AS name, '' AS identity, '7' AS version, 0 AS heard_ms, 0 AS objects, 1 AS whole, 0 AS sum, '' AS positions, '' AS label, x'' AS proof FROM x",
		"tarn_objects_1 is a view":   "DROP TABLE tarn_objects_1; CREATE VIEW tarn_objects_1 AS " + endless + "n AS id, n AS key, x'' AS sum, 0 AS found, NULL AS parts, x'' AS body FROM x",
		"things is endless":          "DROP VIEW things; CREATE VIEW things AS " + endless + "n AS id, n AS meta FROM x",
		"a trigger":                  "CREATE TRIGGER evil AFTER INSERT ON tarn_objects_1 BEGIN INSERT INTO tarn_rows_1 (key, tarn_sum) " + endless + "hex(zeroblob(n)), x'' FROM x; END",
		"a trigger on the rows":      "CREATE TRIGGER evil INSTEAD OF UPDATE ON things BEGIN DELETE FROM tarn_rows_1; END",
		"a column that computes":     "DROP TABLE tarn_rows_1; CREATE TABLE tarn_rows_1 (id INTEGER PRIMARY KEY, key TEXT, labels JSON, name AS (hex(zeroblob(100000000))), tarn_sum BLOB)",
		"an index that computes":     "CREATE INDEX evil ON tarn_objects_1 (hex(zeroblob(length(key) * 20000)))",
		"a huge claim":               "UPDATE tarn_objects_1 SET body = x'01ffffffff0f01'",
		"a huge row":                 "UPDATE tarn_objects_1 SET body = zeroblob(90000000) WHERE id = 1",
		"many tables":                "CREATE TABLE t1 (x); CREATE TABLE t2 (x); CREATE VIEW things_x AS SELECT * FROM t1",
		"a huge version":             "UPDATE tarn_collections SET version = printf('%.3000000c', 'x')",
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, template)
			sql(statements)(t, nil, filepath.Join(dir, fileName))
			readHostile(t, dir)
		})
	}
}
