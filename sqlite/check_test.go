package sqlite

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// rich shows things to SQL in all kinds of columns, with values that SQLite makes
// something else of.
type rich struct{ things }

func (rich) Table() Table {
	return Table{
		Columns: []Column{
			{Name: "name", Type: "TEXT"}, {Name: "n", Type: "INTEGER"}, {Name: "half", Type: "REAL"}, {Name: "odd", Type: "INTEGER"}, {Name: "text", Type: "TEXT"}, {Name: "json", Type: "JSON"}, {Name: "tags", Type: "JSON"},
			{Name: "meta", Type: "JSON", Wide: true, Fill: "text"}, {Name: "spec", Type: "JSON", Wide: true, Shared: true}, {Name: "status", Type: "JSON", Wide: true},
			{Name: "twice", Type: "INTEGER", Expr: "{n} * 2"},
		},
		Indexes: [][]string{{"name"}, {"n", "text"}, {"odd", "key"}},
		Lists:   []List{{Column: "tags", Element: "tag", Beside: "text"}},
	}
}

// richTags are arrays of texts, and values that are no such arrays.
var richTags = []any{JSON(`["a","b"]`), JSON(`["b","b",7,null,"\u0000<\u2028"]`), JSON(`[]`), nil, JSON(`{"a":"b"}`), JSON(`["c"`), JSON(`"a"`)}

// oddValues are those that change their type on the way to disk.
var oddValues = []any{nil, "12", " 0012 ", "1e3", "1e400", "abc", "", "-0", "0x10", "9223372036854775808", true, int64(-7), 2.0, 0.1, math.NaN(), math.Inf(1), strings.Repeat("7", 300)}

func (rich) Row(t thing, raw []byte) (Row, error) {
	part := func(text string, words ...string) WideValue {
		hash := sha256.Sum256([]byte(text))
		return WideValue{Sum: [16]byte(hash[:]), Words: words, Make: func() (JSON, error) {
			if text == "" {
				return nil, nil
			}
			return JSON(text), nil
		}}
	}
	odd := func(i int) any { return oddValues[(t.N+i)%len(oddValues)] }
	labels := map[string]string{"app": t.Name, "n": strconv.Itoa(t.N % 3)}
	if t.N%4 == 0 {
		labels = nil
	}
	status := fmt.Sprintf(`{"n":%d,"pad":%q}`, t.N, t.Pad)
	if t.N%5 == 0 {
		status = ""
	}
	return Row{Labels: labels, Values: []any{
		t.Name, int64(t.N), float64(t.N) / 3, odd(0), odd(1), JSON([]string{"5", `"x"`, `{"a":1}`, "1.50"}[t.N%4]), richTags[t.N%len(richTags)],
		part(`{"name":"` + t.Name + `","version":"` + Hole + `"}`), part(fmt.Sprintf(`{"kind":%d,"node":%q}`, t.N%2, t.Name), t.Name), part(status),
	}}, nil
}

var richDictionary = bytes.Repeat([]byte(`{"Name":"thing","N":1}`), 5)

func openRich(t testing.TB, db *DB) *Store[thing] {
	t.Helper()
	s, err := NewStore(db, Collection{Name: "things", Identity: "rich", Dictionary: richDictionary}, rich{})
	must(t, err)
	return s
}

// richDirectory has n things and a second collection, and was closed normally.
func richDirectory(t testing.TB, n int, key []byte) (dir string, want map[tarn.Key]int) {
	t.Helper()
	dir, want = directory(t), map[tarn.Key]int{}
	db := open(t, dir, Options{Key: key})
	s := openRich(t, db)
	other, err := NewStore(db, Collection{Name: "others"}, things{})
	must(t, err)
	var changes []tarn.Change[thing]
	for i := range n {
		c := put("ns/thing-"+strconv.Itoa(i), i)
		c.Object.Pad = strings.Repeat(strconv.Itoa(i*7919), i%50)
		changes, want[c.Key] = append(changes, c), i
	}
	must(t, s.Apply(changes, tarn.At("7")))
	must(t, other.Apply([]tarn.Change[thing]{put("x", 1), put("y", 2)}, tarn.At("3")))
	must(t, db.Close())
	return dir, want
}

// wantOK says what Check finds in a directory that should be sound.
func wantOK(t testing.TB, dir string, key []byte) *Report {
	t.Helper()
	r, err := Check(t.Context(), dir, key)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Fatalf("in a sound directory is found: %v", r.Findings)
	}
	return r
}

// Check finds nothing in what stores write, for all values, updates and orders.
func TestCheckOfAnIntactDirectory(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	s := openRich(t, db)
	rapid.Check(t, func(rt *rapid.T) {
		must(t, s.Replace(nil, tarn.At("0")))
		steps := rapid.IntRange(1, 6).Draw(rt, "steps")
		for v := range steps {
			var changes []tarn.Change[thing]
			for range rapid.IntRange(0, 12).Draw(rt, "changes") {
				key := "ns/" + strconv.Itoa(rapid.IntRange(0, 9).Draw(rt, "key"))
				if rapid.IntRange(0, 3).Draw(rt, "gone") == 0 {
					changes = append(changes, gone(key))
					continue
				}
				c := put(key, rapid.IntRange(0, 60).Draw(rt, "n"))
				c.Object.Pad = rapid.StringN(0, 300, -1).Draw(rt, "pad")
				changes = append(changes, c)
			}
			must(t, s.Apply(changes, tarn.At(tarn.Version(strconv.Itoa(v+1)))))
		}
		r := wantOK(t, dir, nil)
		if len(r.Collections) != 1 || r.Collections[0].Objects != s.Len() || !r.Collections[0].Complete || string(r.Collections[0].Version) != strconv.Itoa(steps) {
			rt.Fatalf("it counts %+v", r.Collections)
		}
	})
	must(t, db.Close())
	wantOK(t, dir, nil)
	done, err := Repair(t.Context(), dir, nil)
	if err != nil || done.Changed {
		t.Fatalf("a sound directory is repaired: %+v, %v", done, err)
	}
}

// damages are what can happen to a directory. Each is given the path of the file.
var damages = []struct {
	name string
	do   func(t testing.TB, random *rand.Rand, path string)
	// keeps says that nothing of the objects is lost, none that all is.
	keeps, none bool
}{
	{name: "bits of rows", do: raw(func(random *rand.Rand, b []byte) []byte {
		// A third of the file is unused, where a bit is nobody's loss: of three bits, a
		// test in twenty would see nothing.
		for range 24 {
			b[pageSize+random.IntN(len(b)-pageSize)] ^= 1 << random.IntN(8)
		}
		return b
	})},
	{name: "a page of zeros", do: raw(func(random *rand.Rand, b []byte) []byte {
		at := (1 + random.IntN(len(b)/pageSize-1)) * pageSize
		clear(b[at : at+pageSize])
		return b
	})},
	{name: "a page where another belongs", do: raw(func(random *rand.Rand, b []byte) []byte {
		from, to := 1+random.IntN(len(b)/pageSize-1), 1+random.IntN(len(b)/pageSize-1)
		copy(b[to*pageSize:(to+1)*pageSize], b[from*pageSize:])
		return b
	})},
	{name: "the end is cut off", do: raw(func(random *rand.Rand, b []byte) []byte {
		return b[:len(b)-(1+random.IntN(8))*pageSize]
	})},
	{name: "only the first page is left", do: raw(func(random *rand.Rand, b []byte) []byte { return b[:pageSize] }), none: true},
	{name: "no database", do: raw(func(random *rand.Rand, b []byte) []byte { return bytes.Repeat([]byte("what? "), 2000) }), none: true},
	{name: "the header says another format", do: raw(func(random *rand.Rand, b []byte) []byte { b[60] ^= 0x40; return b }), keeps: true},
	{name: "an object's row is gone", do: sql("DELETE FROM tarn_objects_1 WHERE id=3")},
	{name: "an object is there twice", do: sql("INSERT INTO tarn_objects_1 (key, sum, found, parts, body) SELECT key || 'x', sum, found, parts, body FROM tarn_objects_1 WHERE id=3")},
	{name: "an object of another", do: sql("UPDATE tarn_objects_1 SET body=(SELECT body FROM tarn_objects_1 WHERE id=4) WHERE id=3")},
	{name: "a checksum", do: sql("UPDATE tarn_objects_1 SET sum=randomblob(16) WHERE id=3")},
	{name: "a value for SQL", do: sql("UPDATE tarn_rows_1 SET half=half+1 WHERE id=3")},
	{name: "a row for SQL is gone", do: sql("DELETE FROM tarn_rows_1 WHERE id=3")},
	{name: "a row for SQL of another", do: sql("UPDATE tarn_rows_1 SET text='z', tarn_sum=(SELECT tarn_sum FROM tarn_rows_1 WHERE id=4) WHERE id=3")},
	{name: "a label", do: sql("UPDATE tarn_labels_1 SET value='other' WHERE id=3")},
	{name: "labels are gone", do: sql("DELETE FROM tarn_labels_1 WHERE id=3")},
	{name: "a label too many", do: sql("INSERT INTO tarn_labels_1 VALUES (3, 'more', '')")},
	{name: "a wide value", do: sql("UPDATE tarn_wide_1_status SET value='{}' WHERE id=3")},
	{name: "an older wide value", do: sql("UPDATE tarn_wide_1_status SET value=(SELECT value FROM tarn_wide_1_status WHERE id=4), tarn_sum=(SELECT tarn_sum FROM tarn_wide_1_status WHERE id=4) WHERE id=3")},
	{name: "a shared value", do: sql("UPDATE tarn_wide_1_spec_values SET value='{}' WHERE id=1")},
	{name: "a reference to another value", do: sql("UPDATE tarn_wide_1_spec SET value=3-value WHERE id=3")},
	{name: "a word of a shared value", do: sql("UPDATE tarn_wide_1_spec SET word0='other' WHERE id=3")},
	{name: "rows of no object", do: sql("INSERT INTO tarn_rows_1 SELECT id+1000, key, labels, name, n, half, odd, text, json, tags, tarn_sum FROM tarn_rows_1 WHERE id=3"), keeps: true},
	{name: "an index is gone", do: sql("DROP INDEX things_by_name"), keeps: true},
	{name: "a trigger of somebody's", do: sql("CREATE TRIGGER mine AFTER INSERT ON tarn_objects_1 BEGIN DELETE FROM tarn_rows_1; END"), keeps: true},
	{name: "another view", do: sql("DROP VIEW things; CREATE VIEW things AS SELECT 1"), keeps: true},
	{name: "a table is gone", do: sql("DROP TABLE tarn_wide_1_status"), none: true},
	{name: "the version", do: sql("UPDATE tarn_collections SET version='8' WHERE id=1"), none: true},
	{name: "the number of objects", do: sql("UPDATE tarn_collections SET objects=1 WHERE id=1"), none: true},
	{name: "the dictionary", do: sql("UPDATE tarn_dictionaries SET value=x'00' || randomblob(100)"), none: true},
	{name: "a letter of the dictionary", do: sql("UPDATE tarn_dictionaries SET value=CAST(replace(CAST(value AS TEXT), 'thing', 'thinG') AS BLOB)"), none: true},
	{name: "the salt", do: sql("UPDATE tarn_format SET value=randomblob(32) WHERE name='salt'"), none: true},
	{name: "no salt", do: sql("DELETE FROM tarn_format WHERE name='salt'"), none: true},
	{name: "the format is missing", do: sql("DELETE FROM tarn_format WHERE name='format'"), keeps: true},
	{name: "tarn_format is a view", do: sql("DROP TABLE tarn_format; CREATE VIEW tarn_format AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x) SELECT 'format' AS name, max(n) AS value FROM x"), none: true},
}

// raw changes the bytes of the file.
func raw(change func(random *rand.Rand, b []byte) []byte) func(testing.TB, *rand.Rand, string) {
	return func(t testing.TB, random *rand.Rand, path string) {
		b, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, change(random, b), 0o600))
	}
}

// sql changes tables, as any tool can.
func sql(statements string) func(testing.TB, *rand.Rand, string) {
	return func(t testing.TB, _ *rand.Rand, path string) {
		conn, err := sqlite3.Open(path)
		must(t, err)
		must(t, conn.Exec(statements))
		must(t, conn.Close())
	}
}

// Every damage is found, by Check and when the directory is opened. What Repair saves
// is correct, and Check finds nothing in it.
func TestCheckAndRepair(t *testing.T) {
	template, want := richDirectory(t, 60, nil)
	for _, damage := range damages {
		t.Run(damage.name, func(t *testing.T) {
			rounds := 1
			if strings.Contains(damage.name, "page") || strings.Contains(damage.name, "bits") || strings.Contains(damage.name, "cut") {
				rounds = seeds()
			}
			found := 0
			for seed := range uint64(rounds) {
				dir := copyOf(t, template)
				damage.do(t, rand.New(rand.NewPCG(seed, 3)), filepath.Join(dir, fileName))
				r, err := Check(t.Context(), dir, nil)
				if err != nil {
					t.Fatalf("seed %d: Check says %v", seed, err)
				}
				for _, f := range r.Findings {
					if strings.Contains(f.String(), "\n") {
						t.Errorf("seed %d: a finding of several lines: %q", seed, f)
					}
				}
				if !r.OK() {
					found++
				}
				checkRepair(t, seed, dir, want, damage.keeps, damage.none, !r.OK())
			}
			if found == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// checkRepair repairs a directory, and checks the result.
func checkRepair(t *testing.T, seed uint64, dir string, want map[tarn.Key]int, keeps, none, unsound bool) {
	t.Helper()
	done, err := Repair(t.Context(), dir, nil)
	if err != nil {
		if !none && !strings.Contains(err.Error(), "could not be repaired") || strings.Contains(err.Error(), "\n") {
			t.Errorf("seed %d: Repair says %v", seed, err)
		}
	} else {
		if done.Changed != unsound {
			t.Errorf("seed %d: Repair did %+v", seed, done)
		}
		if again, err := Check(t.Context(), dir, nil); err != nil || !again.OK() {
			t.Errorf("seed %d: after the repair is found %v, %v", seed, again, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+repairSuffix+"*")); len(left) > 0 {
		t.Errorf("seed %d: %v is left", seed, left)
	}
	db := open(t, dir, Options{})
	defer db.Close()
	b := follow(t, openRich(t, db))
	kept, err := b.Restore(t.Context())
	must(t, err)
	got := content(b)
	for key, n := range got {
		if want[key] != n {
			t.Errorf("seed %d: %s is %d, and was %d", seed, key, n, want[key])
		}
	}
	switch complete := maps.Equal(got, want); {
	case kept.Version() != "" && kept.Version() != "7":
		t.Errorf("seed %d: it is at version %q", seed, kept.Version())
	case kept.Version() == "7" && kept.Positions[0].Complete && !complete:
		t.Errorf("seed %d: %d of %d objects are there, and it is not told that some are lost", seed, len(got), len(want))
	case keeps && !complete:
		t.Errorf("seed %d: %d of %d objects are left", seed, len(got), len(want))
	case none && len(got) > 0:
		t.Errorf("seed %d: %d objects are left", seed, len(got))
	}
	if len(got) > 0 {
		answer, err := db.Query(t.Context(), "SELECT count(*), count(meta), sum((SELECT count(*) FROM things_labels l WHERE l.id = things.id)) FROM things", Limits{})
		if err != nil || answer.Rows[0][0] != int64(len(got)) || answer.Rows[0][1] != int64(len(got)) {
			t.Errorf("seed %d: SQL shows %v of %d objects, %v", seed, answer, len(got), err)
		}
	}
}

// What was lost with the log is an older state, or found to be damaged; never another.
func TestCheckWithoutTheLog(t *testing.T) {
	for seed := range uint64(seeds()) {
		dir := directory(t)
		db := open(t, dir, Options{})
		must(t, db.writer.Exec("PRAGMA wal_autocheckpoint=15"))
		s := openTabular(t, db, "things")
		h := newHistory(seed)
		for range 30 {
			changes, v := h.step()
			must(t, s.Apply(changes, tarn.At(v)))
		}
		after := copyOf(t, dir)
		must(t, db.Close())
		must(t, os.Remove(filepath.Join(after, fileName+"-wal")))
		r, err := Check(t.Context(), after, nil)
		must(t, err)
		again := open(t, after, Options{})
		b := follow(t, openTabular(t, again, "things"))
		kept, err := b.Restore(t.Context())
		must(t, err)
		if want, known := h.states[kept.Version()]; !known || !maps.Equal(content(b), want) {
			t.Errorf("seed %d: at version %q there is what there never was", seed, kept.Version())
		}
		if r.OK() && len(reports(t, after)) > 0 {
			t.Errorf("seed %d: Check finds nothing, and the file is damaged", seed)
		}
		must(t, again.Close())
	}
}

// A first state that was written only in part is reported as incomplete, which is not
// damage; Repair leaves it alone.
func TestCheckOfAHalfWrittenState(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	must(t, openRich(t, db).Fill([]tarn.Change[thing]{put("a", 1), put("b", 2)}, true))
	must(t, db.Close())
	r := wantOK(t, dir, nil)
	if c := r.Collections[0]; c.Complete || c.Objects != 2 {
		t.Errorf("it is told as %+v", c)
	}
	sql("UPDATE tarn_rows_1 SET n=9")(t, nil, filepath.Join(dir, fileName))
	done, err := Repair(t.Context(), dir, nil)
	must(t, err)
	if len(done.Saved) != 0 || !done.Changed {
		t.Errorf("of half a state is saved %+v", done)
	}
	wantOK(t, dir, nil)
}

// A wrong key, another format or a missing directory gives an error of one line, and
// nothing is changed.
func TestCheckOfWhatCannotBe(t *testing.T) {
	key := bytes.Repeat([]byte{3}, keySize)
	sealed, _ := richDirectory(t, 5, key)
	plain, _ := richDirectory(t, 5, nil)
	newer, _ := richDirectory(t, 5, nil)
	sql("PRAGMA user_version=99; UPDATE tarn_format SET value=99 WHERE name='format'")(t, nil, filepath.Join(newer, fileName))
	older, _ := richDirectory(t, 5, nil)
	sql("PRAGMA user_version=3")(t, nil, filepath.Join(older, fileName))
	foreign := directory(t)
	must(t, os.Mkdir(foreign, 0o700))
	sql("CREATE TABLE mine (x)")(t, nil, filepath.Join(foreign, fileName))
	for _, c := range []struct {
		dir  string
		key  []byte
		is   error
		want string
	}{
		{sealed, nil, ErrKey, "no key was given"},
		{sealed, bytes.Repeat([]byte{4}, keySize), ErrKey, "another key"},
		{sealed, []byte("short"), nil, "32"},
		{plain, key, ErrKey, "a key was given"},
		{newer, nil, ErrNewerFormat, "newer Tarn"},
		{older, nil, nil, "older format 3"},
		{foreign, nil, errForeign, "something else"},
		{directory(t), nil, nil, "holds no replica"},
	} {
		before := filesOf(t, c.dir)
		_, err := Check(t.Context(), c.dir, c.key)
		_, also := Repair(t.Context(), c.dir, c.key)
		for _, err := range []error{err, also} {
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says %v, want %q", err, c.want)
			}
		}
		for name, now := range filesOf(t, c.dir) {
			if strings.HasSuffix(name, fileName) && !bytes.Equal(before[name], now) {
				t.Errorf("%s was changed", name)
			}
		}
	}
	wantOK(t, sealed, key)
	db := open(t, plain, Options{})
	wantOK(t, plain, nil)
	if _, err := Repair(t.Context(), plain, nil); !errors.Is(err, ErrInUse) {
		t.Errorf("a directory in use is repaired: %v", err)
	}
	must(t, db.Close())
	must(t, os.Chmod(plain, 0o755))
	if r, err := Check(t.Context(), plain, nil); err != nil || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, "open to others") {
		t.Errorf("a directory that is open to others: %v, %v", r, err)
	}
}

// An encrypted directory is checked and repaired with its key.
func TestRepairOfAnEncryptedDirectory(t *testing.T) {
	key := bytes.Repeat([]byte{3}, keySize)
	dir, want := richDirectory(t, 60, key)
	sql("UPDATE tarn_objects_1 SET body=substr(body, 2) WHERE id IN (3, 5)")(t, nil, filepath.Join(dir, fileName))
	r, err := Check(t.Context(), dir, key)
	if err != nil || len(r.Findings) != 2 || r.Collections[0].Bad != 2 || r.Collections[0].Complete || !r.Collections[1].Complete {
		t.Fatalf("Check finds %+v, %v", r, err)
	}
	done, err := Repair(t.Context(), dir, key)
	if err != nil || done.Saved["things"] != 58 || done.Saved["others"] != 2 {
		t.Fatalf("Repair did %+v, %v", done, err)
	}
	wantOK(t, dir, key)
	b := follow(t, openRich(t, open(t, dir, Options{Key: key})))
	kept, err := b.Restore(t.Context())
	if err != nil || len(kept.Positions) != 1 || kept.Positions[0].Complete || kept.Version() != "7" || len(content(b)) != len(want)-2 {
		t.Errorf("it is restored as %+v with %d objects, %v", kept, len(content(b)), err)
	}
}

// What a repair that was killed left is removed at the next start.
func TestRepairThatWasKilled(t *testing.T) {
	dir, want := richDirectory(t, 5, nil)
	for _, suffix := range []string{"", "-journal"} {
		must(t, os.WriteFile(filepath.Join(dir, fileName+repairSuffix+suffix), []byte("half"), 0o600))
	}
	expect(t, openRich(t, open(t, dir, Options{})), "7", want)
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+repairSuffix+"*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
