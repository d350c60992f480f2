package sqlite

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

var randomStatements = testsize.Flag("statements", 120, 40, "how many statements TestRandomStatements makes up")

// fuzzed is a directory that statements are tried on, with what it must keep.
type fuzzed struct {
	dir string
	sum [32]byte
}

func newFuzzed(t testing.TB) *fuzzed {
	dir := directory(t)
	db := open(t, dir, Options{})
	s := openTabular(t, db, "a")
	var changes []tarn.Change[thing]
	for i := range 50 {
		changes = append(changes, put(fmt.Sprintf("ns/t%d", i), i))
	}
	must(t, s.Apply(changes, tarn.At("1")))
	must(t, db.Close())
	f := &fuzzed{dir: dir}
	f.sum = f.read(t)
	return f
}

func (f *fuzzed) read(t testing.TB) [32]byte {
	raw, err := os.ReadFile(filepath.Join(f.dir, fileName))
	must(t, err)
	return sha256.Sum256(raw)
}

// try asks a statement, and checks that it kept to its limits of time, memory, rows
// and bytes, that it wrote nothing, and that what it says is one line.
func (f *fuzzed) try(t testing.TB, sql string) {
	limits := Limits{Time: 20 * time.Millisecond, Rows: 20, Bytes: 1 << 20}
	var result *Result
	var err error
	start := time.Now()
	grown := allocated(func() { result, err = Query(t.Context(), f.dir, sql, limits) })
	if took := time.Since(start); took > 5*time.Second { // 25 ms is expected
		t.Errorf("took %v, %v: %.200q", took, err, sql)
	}
	// Functions in Go make values of up to 8 MiB, and a statement calls few in its time.
	if grown > 256<<20 {
		t.Errorf("took %d MiB of Go memory, %v: %.200q", grown>>20, err, sql)
	}
	switch {
	case err != nil && (strings.Contains(err.Error(), "\n") && !strings.Contains(sql, "\n") || !strings.HasPrefix(err.Error(), "sqlite: ")):
		t.Errorf("says %v: %.200q", err, sql)
	case err == nil && len(result.Rows) > limits.Rows:
		t.Errorf("%d rows: %.200q", len(result.Rows), sql)
	case err == nil:
		size := 0
		for _, row := range result.Rows {
			for _, v := range row {
				if s, ok := v.(string); ok {
					v = Text(s)
				}
				size += sizeOf(v)
			}
		}
		if size > limits.Bytes {
			t.Errorf("%d bytes: %.200q", size, sql)
		}
	}
	if f.read(t) != f.sum {
		t.Fatalf("the file was changed: %.200q", sql)
	}
	entries, err := os.ReadDir(f.dir)
	must(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), fileName) && e.Name() != lockName {
			t.Fatalf("there is a file %s: %.200q", e.Name(), sql)
		}
	}
}

// FuzzStatement asks any text.
func FuzzStatement(f *testing.F) {
	for _, sql := range slow() {
		f.Add(sql)
	}
	for _, sql := range []string{
		"", ";", "SELECT", "SELECT * FROM a", "SELECT * FROM a JOIN a_labels USING (id) WHERE n > 3 ORDER BY name LIMIT 2", "PRAGMA query_only=0", "ATTACH 'x' AS y",
		"DELETE FROM a", "EXPLAIN SELECT 1", "SELECT load_extension('x')", "VALUES (1), (2)", "SELECT 1; SELECT 2", "SELECT x'00' || char(0, 1114111)", "WITH a AS (SELECT 1) INSERT INTO a VALUES (1)",
	} {
		f.Add(sql)
	}
	target := newFuzzed(f)
	f.Fuzz(func(t *testing.T, sql string) { target.try(t, sql) })
}

// FuzzStatementGrammar asks statements that are made up by a grammar, so that most of
// them compile.
func FuzzStatementGrammar(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		choices := make([]byte, 200)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		f.Add(choices)
	}
	target := newFuzzed(f)
	f.Fuzz(func(t *testing.T, choices []byte) { target.try(t, makeUp(choices)) })
}

// TestRandomStatements is a short run of the same in make test.
func TestRandomStatements(t *testing.T) {
	target := newFuzzed(t)
	answered := 0
	for seed := range uint64(randomStatements()) {
		random := rand.New(rand.NewPCG(seed, 7))
		choices := make([]byte, 20+random.IntN(300))
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		sql := makeUp(choices)
		if _, err := Query(t.Context(), target.dir, sql, Limits{Rows: 1, Time: 5 * time.Millisecond}); err == nil || strings.Contains(err.Error(), "stopped") {
			answered++
		}
		target.try(t, sql)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if answered < randomStatements()/3 {
		t.Errorf("of %d statements only %d could be computed: the grammar is no good", randomStatements(), answered)
	}
}

// maker makes a statement out of choices. Where they end, it takes the first thing of
// each list, which is short.
type maker struct {
	choices []byte
	depth   int
	// scope is the number of the innermost SELECT, last that of the last one.
	scope, last int
	// aggregates says that there may be one here.
	aggregates bool
	out        strings.Builder
}

func makeUp(choices []byte) string {
	m := &maker{choices: choices}
	m.statement()
	return m.out.String()
}

func (m *maker) n(k int) int {
	if len(m.choices) == 0 {
		return 0
	}
	c := int(m.choices[0])
	m.choices = m.choices[1:]
	return c % k
}

func (m *maker) write(words ...string) { m.out.WriteString(" " + strings.Join(words, " ")) }

func (m *maker) one(of ...string) { m.write(of[m.n(len(of))]) }

// deeper reports whether to nest another expression.
func (m *maker) deeper() bool { return m.depth < 6 && len(m.choices) > 0 }

func (m *maker) within(do func()) {
	m.depth++
	defer func() { m.depth-- }()
	do()
}

func (m *maker) statement() {
	switch m.n(12) {
	case 0:
		m.one("DELETE FROM a", "UPDATE a SET n = 1", "INSERT INTO a_labels VALUES (1, 2, 3)", "DROP TABLE a", "VACUUM", "PRAGMA journal_mode = DELETE", "CREATE TABLE z (x)", "ATTACH 'z' AS z", "REINDEX", "BEGIN")
		return
	case 1:
		m.one("EXPLAIN", "EXPLAIN QUERY PLAN")
	}
	if m.n(3) > 0 {
		m.write("WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x")
		m.one("LIMIT 100)", "LIMIT 100000)", ")", "WHERE n < 1000)")
		m.write(", v(s) AS")
		m.one("(", "MATERIALIZED (")
		m.write("SELECT")
		m.one("printf('%.1000c', 'a')", "printf('%.3000000c', 'a')", "hex(zeroblob(3000000))", "'[' || replace(printf('%.300000c', 'x'), 'x', '1,') || '1]'", "char(1)")
		m.write(")")
	} else {
		m.write("WITH x(n) AS (VALUES (1), (2), (NULL)), v(s) AS (SELECT 'text')")
	}
	m.query(1 + m.n(4))
}

// query makes a SELECT of so many columns.
func (m *maker) query(columns int) {
	outer, aggregates := m.scope, m.aggregates
	defer func() { m.scope, m.aggregates = outer, aggregates }()
	m.last++
	m.scope, m.aggregates = m.last, true
	m.write("SELECT")
	m.one("", "DISTINCT")
	for i := range columns {
		if i > 0 {
			m.write(",")
		}
		m.expression()
	}
	m.aggregates = false
	// What expressions can be about is always there, under names of its own.
	m.write(fmt.Sprintf("FROM a AS a%d, x AS x%d, v AS v%d", m.scope, m.scope, m.scope))
	for range m.n(3) {
		m.table()
	}
	if m.n(2) == 1 {
		m.write("WHERE")
		m.expression()
	}
	if m.n(4) == 1 {
		m.write("GROUP BY")
		m.expression()
	}
	if m.n(4) == 1 && m.deeper() {
		m.one("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
		m.within(func() { m.query(columns) })
		return
	}
	if m.n(3) == 1 {
		m.write("ORDER BY")
		m.expression()
		m.one("", "DESC")
	}
	if m.n(3) == 1 {
		m.one("LIMIT 5", "LIMIT -1 OFFSET 100000000", "LIMIT 1000000")
	}
}

// table adds one to those that are there.
func (m *maker) table() {
	m.one(", ", "JOIN", "LEFT JOIN")
	if m.n(4) == 1 && m.deeper() {
		m.write("(")
		m.within(func() { m.query(1) })
		m.write(")")
		return
	}
	m.one("x", "v", "a", "a_labels", "tarn_collections", "sqlite_schema", "tarn_objects_1", "tarn_rows_1", "json_each('[1,2,3]')", "json_tree('{\"a\":[1,{\"b\":2}]}')", "generate_series(1, 1000000000)")
}

func (m *maker) expression() {
	if !m.deeper() {
		m.one("1", "NULL", "'a'", "x'00ff'", "1e999", "9223372036854775807", "-0.0", "''")
		return
	}
	m.within(func() {
		switch m.n(10) {
		case 0:
			m.one("1", "NULL", "'%_%_%_%_%_a'", "'(a|aa|b?){50}c'", "x'00ff'", "3000000")
		case 1, 2:
			column := []string{"v%d.s", "x%d.n", "a%d.name", "a%d.json", "a%d.labels", "a%d.key"}[m.n(6)]
			m.write(fmt.Sprintf(column, m.scope))
		case 3, 4:
			m.write("(")
			m.expression()
			m.one("+", "||", "=", "<", "LIKE", "GLOB", "REGEXP", "IS", "AND", "->", "->>", "%", "<<", "COLLATE NOCASE =")
			m.expression()
			m.write(")")
		case 5:
			m.write("(")
			m.query(1)
			m.write(")")
		case 6:
			m.write("CASE WHEN")
			m.expression()
			m.write("THEN")
			m.expression()
			m.write("END")
		case 7:
			if !m.aggregates {
				m.expression()
				return
			}
			m.aggregates = false
			m.one("sum(", "count(", "group_concat(", "max(", "json_group_array(", "total(", "avg(", "string_agg('x', ", "decimal_sum(")
			m.expression()
			m.one(")", ") OVER ()", ") OVER (ORDER BY 1)", ") FILTER (WHERE 1)")
			m.aggregates = true
		default:
			m.one("hex(", "upper(", "length(", "quote(", "json(", "jsonb(", "json_valid(", "trim(", "unhex(", "zeroblob(", "randomblob(", "abs(", "round(", "soundex(", "typeof(", "json_array_length(", "unicode(", "char(", "date(", "json_pretty(", "instr('aaa', ", "replace('aaaa', 'a', ", "printf('%1000000s', ", "substr('abc', ", "json_extract('[1]', ", "regexp('a*', ", "like('%a%', ", "likely(", "concat('a', ", "printf('%q%Q%w', 1, 2, ", "strftime('%Y', ", "json_patch('{}', ", "load_extension(")
			m.expression()
			m.write(")")
		}
	})
}
