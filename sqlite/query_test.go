package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// tabular shows things to SQL.
type tabular struct{ things }

func (tabular) Table() Table {
	return Table{
		Columns: []Column{{Name: "name", Type: "TEXT"}, {Name: "n", Type: "INTEGER"}, {Name: "half", Type: "REAL"}, {Name: "json", Type: "JSON", Wide: true},
			{Name: "twice", Type: "JSON", Expr: "json_array({json}, {n})"}},
		Indexes: [][]string{{"name"}, {"n"}},
	}
}

func (c tabular) Row(t thing, raw []byte) (Row, error) {
	hash := sha256.Sum256(raw)
	raw = bytes.Clone(raw)
	labels := map[string]string{"parity": []string{"even", "odd"}[t.N%2]}
	if t.N%3 == 0 {
		labels["third"] = ""
	}
	return Row{Values: []any{t.Name, int64(t.N), float64(t.N) / 2, WideValue{Sum: [16]byte(hash[:]), Make: func() (JSON, error) { return raw, nil }}}, Labels: labels}, nil
}

func openTabular(t testing.TB, db *DB, name string) *Store[thing] {
	t.Helper()
	s, err := NewStore(db, Collection{Name: name}, tabular{})
	must(t, err)
	return s
}

func ask1(t testing.TB, dir, sql string, args ...any) string {
	t.Helper()
	r, err := Query(t.Context(), dir, sql, Limits{}, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.ReplaceAll(strings.TrimSpace(asCSV(r)), "\n", " ")
}

// asCSV is the rows of an answer, for comparisons.
func asCSV(r *Result) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	for _, row := range r.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			switch v := v.(type) {
			case nil:
			case []byte:
				cells[i] = base64.StdEncoding.EncodeToString(v)
			default:
				cells[i] = fmt.Sprint(v)
			}
		}
		_ = w.Write(cells) // memory takes everything
	}
	w.Flush()
	return b.String()
}

func TestQuery(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	a, b := openTabular(t, db, "a"), openTabular(t, db, "b")
	var changes []tarn.Change[thing]
	for i := range 10 {
		changes = append(changes, put("t"+strconv.Itoa(i), i))
	}
	must(t, a.Apply(changes, tarn.At("1")))
	must(t, b.Apply(changes[:3], tarn.At("1")))
	must(t, a.Apply([]tarn.Change[thing]{put("t0", 100), gone("t1"), put("t5", 5)}, tarn.At("2")))
	for _, closed := range []bool{false, true} {
		if closed {
			must(t, db.Close())
		}
		for _, test := range []struct{ sql, want string }{
			{"SELECT count(*), max(n), max(half) FROM a", "9,100,50"},
			{"SELECT a.name FROM a JOIN b USING (name) ORDER BY 1", "t0 t2"},
			{"SELECT json_extract(json, '$.N') FROM a WHERE name='t0'", "100"},
			{"SELECT labels->>'parity' FROM a WHERE name='t3'", "odd"},
			{"SELECT count(*) FROM a JOIN a_labels l USING (id) WHERE l.name='third'", "3"},
			{"SELECT count(*) FROM a_labels WHERE id NOT IN (SELECT id FROM a)", "0"},
			{"SELECT name, version FROM tarn_collections ORDER BY name", "a,2 b,1"},
			{"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x WHERE n<5) SELECT sum(n) FROM x; -- the end", "15"},
			{"SELECT twice->>1 FROM a WHERE name='t0'", "100"},
			{"SELECT upper('x'), NULL, x'00ff', 1.5", "X,,AP8=,1.5"},
			{"SELECT name FROM a WHERE name REGEXP '^t[23]$' ORDER BY 1", "t2 t3"},
			{"SELECT 'T' REGEXP 't', regexpi('t', 'T'), NULL REGEXP 't'", "0,1,"},
		} {
			if got := ask1(t, dir, test.sql); got != test.want {
				t.Errorf("closed %v: %s gives %q, want %q", closed, test.sql, got, test.want)
			}
		}
		if got := ask1(t, dir, "SELECT name FROM a WHERE n > ? ORDER BY n DESC LIMIT ?", 3, 2); got != "t0 t9" {
			t.Errorf("with parameters: %q", got)
		}
	}
	if plan := ask1(t, dir, "EXPLAIN QUERY PLAN SELECT a.key FROM a JOIN a_labels l USING (id) WHERE l.name='parity' AND l.value='odd'"); !strings.Contains(plan, "a_labels_by_name_value") {
		t.Errorf("labels are looked up by %s", plan)
	}
}

// An update that changes nothing that a row is found by leaves indexes alone, and
// one that does changes them.
func TestTablesFollowUpdates(t *testing.T) {
	dir := directory(t)
	s := openTabular(t, open(t, dir, Options{}), "a")
	must(t, s.Apply([]tarn.Change[thing]{put("x", 6)}, tarn.At("1")))
	touched := put("x", 6)
	touched.Object.Pad = "more"
	must(t, s.Apply([]tarn.Change[thing]{touched}, tarn.At("2")))
	if got := ask1(t, dir, "SELECT json->>'Pad', (SELECT count(*) FROM a_labels) FROM a WHERE n=6"); got != "more,2" {
		t.Errorf("after a touch: %q", got)
	}
	must(t, s.Apply([]tarn.Change[thing]{put("x", 7)}, tarn.At("3")))
	if got := ask1(t, dir, "SELECT n, labels, (SELECT group_concat(name||value) FROM a_labels) FROM a WHERE n=7"); got != `7,"{""parity"":""odd""}",parityodd` {
		t.Errorf("after an update: %q", got)
	}
	must(t, s.Replace(nil, tarn.At("4")))
	if got := ask1(t, dir, "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM a_labels)"); got != "0,0" {
		t.Errorf("after a replace: %q", got)
	}
}

// Nothing but reading is possible, however it is put.
func TestQueriesOnlyRead(t *testing.T) {
	dir := directory(t)
	s := openTabular(t, open(t, dir, Options{}), "a")
	must(t, s.Apply([]tarn.Change[thing]{put("x", 1)}, tarn.At("1")))
	other := filepath.Join(t.TempDir(), "other.db")
	for _, sql := range []string{
		"DELETE FROM a", "UPDATE a SET n=2", "DELETE FROM tarn_rows_1", "UPDATE tarn_rows_1 SET n=2", "DELETE FROM a_labels", "INSERT INTO a (key) VALUES ('y')", "REPLACE INTO a (id, key) VALUES (1, 'y')",
		"WITH x AS (SELECT 1) DELETE FROM a", "CREATE TABLE z (x)", "CREATE TEMP TABLE z (x)", "CREATE VIEW z AS SELECT 1",
		"CREATE TEMP TRIGGER z AFTER INSERT ON a BEGIN SELECT 1; END", "DROP TABLE a", "ALTER TABLE a RENAME TO b", "CREATE INDEX z ON a (n)",
		"REINDEX", "ANALYZE", "VACUUM", "VACUUM INTO '" + other + "'",
		"ATTACH '" + other + "' AS other", "DETACH main",
		"PRAGMA query_only=0", "PRAGMA journal_mode=DELETE", "PRAGMA user_version=9", "PRAGMA table_info(a)", "PRAGMA writable_schema=1",
		"SELECT * FROM pragma_user_version", "SELECT * FROM pragma_table_info('a')",
		"BEGIN", "COMMIT", "SAVEPOINT x", "EXPLAIN DELETE FROM a", "SELECT load_extension('x')", "SELECT writefile('x','y')",
		"CREATE VIRTUAL TABLE z USING fts5(x)",
		"SELECT 1; DELETE FROM a", "SELECT 1; SELECT 2",
	} {
		r, err := Query(t.Context(), dir, sql, Limits{})
		if err == nil {
			t.Errorf("%s was answered: %v", sql, r)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error has several lines: %v", sql, err)
		}
	}
	if _, err := Query(t.Context(), dir, "DELETE FROM a", Limits{}); !errors.Is(err, ErrNotReading) || !strings.Contains(err.Error(), "cannot modify a") {
		t.Errorf("a DELETE says %v", err)
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a file was made: %v", err)
	}
	if got := ask1(t, dir, "SELECT key, n FROM a"); got != "x,1" {
		t.Errorf("afterwards there is %q", got)
	}
}

func TestQueryLimits(t *testing.T) {
	dir := directory(t)
	s := openTabular(t, open(t, dir, Options{}), "a")
	must(t, s.Apply([]tarn.Change[thing]{put("x", 1), put("y", 2), put("z", 3)}, tarn.At("1")))
	const endless = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x) SELECT "

	start := time.Now()
	if _, err := Query(t.Context(), dir, endless+"count(*) FROM x", Limits{Time: 50 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "stopped after 50ms") {
		t.Errorf("an endless query says %v", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v to stop", d)
	}
	r, err := Query(t.Context(), dir, endless+"n FROM x", Limits{Rows: 7})
	if err != nil || len(r.Rows) != 7 || !r.Cut {
		t.Errorf("a cut answer is %v, %v", r, err)
	}
	r, err = Query(t.Context(), dir, endless+"printf('%.10000c','x') FROM x", Limits{Bytes: 100_000})
	if err != nil || len(r.Rows) > 12 || !r.Cut {
		t.Errorf("an answer cut by its bytes has %d rows, %v", len(r.Rows), err)
	}
	const long = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x WHERE n<100) SELECT group_concat(printf('%.1000000c','x')) FROM x"
	if _, err := Query(t.Context(), dir, long, Limits{Time: time.Minute}); err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("a text that is too long says %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Query(ctx, dir, endless+"count(*) FROM x", Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled query says %v", err)
	}
}

func TestBadQueries(t *testing.T) {
	dir := directory(t)
	openTabular(t, open(t, dir, Options{}), "a")
	for sql, want := range map[string]string{
		"":                    "no statement",
		"  -- nothing":        "no statement",
		"SELEC 1":             `near "SELEC": syntax error`,
		"SELECT * FROM pod":   "no such table: pod",
		"SELECT x FROM a":     "no such column: x",
		"SELECT ?":            "1 parameters, and 0 values",
		"SELECT json('{')":    "malformed JSON",
		"SELECT 1 FROM a; {{": "one statement",
	} {
		_, err := Query(t.Context(), dir, sql, Limits{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q says %v, want one line with %q", sql, err, want)
		}
	}
	if _, err := Query(t.Context(), filepath.Join(dir, "none"), "SELECT 1", Limits{}); err == nil || !strings.Contains(err.Error(), "holds no replica") {
		t.Errorf("a directory without a replica says %v", err)
	}
}

// Functions that compare much with much cannot be interrupted, and must not take
// long in the first place.
func TestQuickFunctions(t *testing.T) {
	if raceEnabled {
		t.Skip("it is about time, of which the race detector takes the most; make questions runs it")
	}
	dir := directory(t)
	openTabular(t, open(t, dir, Options{}), "a")
	for _, sql := range []string{
		"SELECT instr(hay, needle)", "SELECT length(replace(hay, needle, ''))", "SELECT hay LIKE '%a' || printf('%.40000c', '_') || 'b'",
		"SELECT hay REGEXP '(a|aa|b?)*(a|aa)*a{50}c'", "SELECT substr(hay, 1, 1000000) REGEXP '(a|aa|b?)*(a|aa)*a{50}c'", "SELECT length(trim(hay, chars))", "SELECT length(ltrim(hay, chars))", "SELECT length(rtrim(hay, chars))",
		"SELECT decimal_mul(digits, digits)", "SELECT json_patch(object, object)",
		"SELECT sum(length(hex(randomblob(4000000)))) FROM (WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x) SELECT n FROM x), (SELECT 1)",
	} {
		if !strings.Contains(sql, "FROM") {
			sql += " FROM (SELECT printf('%.4000000c', 'a') AS hay, printf('%.1000000c', 'a') || 'b' AS needle, printf('%.2000000c', 'b') || 'a' AS chars, printf('%.2000000c', '7') AS digits, " +
				"(WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x WHERE n < 100000) SELECT json_group_object('k' || n, n) FROM x) AS object)"
		}
		start := time.Now()
		_, err := Query(t.Context(), dir, sql, Limits{Time: time.Second})
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%.50s… took %v: %v", sql, took, err)
		}
	}
}

// What was put in the place of SQLite's functions answers as they do.
func TestFunctionsAnswerAsSQLite(t *testing.T) {
	dir := directory(t)
	openTabular(t, open(t, dir, Options{}), "a")
	plain, err := sqlite3.Open(":memory:")
	must(t, err)
	defer plain.Close()
	values := []string{"NULL", "''", "'a'", "'ab'", "'aba'", "'äöä'", "'ö'", "x'61'", "x'6162'", "x''", "121", "12", "1.5", "'x' || char(0) || 'a'", "char(0)", "'  a '", "' '"}
	// All questions about a value are one statement: preparing a statement costs most.
	for _, a := range values {
		var calls, columns []string
		for _, b := range values {
			for _, f := range []string{"instr", "trim", "ltrim", "rtrim"} {
				calls = append(calls, f+"("+a+", "+b+")")
			}
			for _, c := range []string{"NULL", "''", "'-'", "x'2d'", "7"} {
				calls = append(calls, "replace("+a+", "+b+", "+c+")")
			}
		}
		for _, call := range calls {
			columns = append(columns, "quote("+call+") || ' ' || typeof("+call+")")
		}
		sql := "SELECT " + strings.Join(columns, ", ")
		want := make([]string, len(calls))
		must(t, query(plain, sql, func(row *sqlite3.Stmt) error {
			for i := range want {
				want[i] = row.ColumnText(i)
			}
			return nil
		}))
		r, err := Query(t.Context(), dir, sql, Limits{})
		must(t, err)
		for i, got := range r.Rows[0] {
			if got != want[i] {
				t.Errorf("%s gives %q, want %q", calls[i], got, want[i])
			}
		}
	}
}

// A query that needs too much memory, to compile or to run, fails with an error that
// says so, and leaves nothing open.
func TestQueryMemory(t *testing.T) {
	if raceEnabled { // it takes its time to fill so much
		defer func(usual int64) { queryMemory = usual }(queryMemory)
		queryMemory = 32 << 20
	}
	dir := directory(t)
	db := open(t, dir, Options{})
	openTabular(t, db, "a")
	doubled := "WITH c0(x) AS (SELECT 1)"
	for i := range 30 {
		doubled += fmt.Sprintf(", c%d AS (SELECT * FROM c%d UNION ALL SELECT * FROM c%d)", i+1, i, i)
	}
	files := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("open files cannot be counted here")
		}
		return len(all)
	}
	before := files()
	for _, sql := range []string{
		doubled + " SELECT count(*) FROM c30",
		"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x) SELECT count(DISTINCT v) FROM (SELECT n || printf('%.1000000c', 'x') AS v FROM x)",
	} {
		if _, err := Query(t.Context(), dir, sql, Limits{Time: time.Minute}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("needs more than %d MiB", queryMemory>>20)) {
			t.Errorf("%.40s… says %v", sql, err)
		}
	}
	if now := files(); now > before {
		t.Errorf("%d files were open, and %d are now", before, now)
	}
}
