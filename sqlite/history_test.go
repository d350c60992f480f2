package sqlite

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog/logtest"
)

// logged is the codec of the suite's objects, with a table.
type logged struct{}

func (logged) Append(buf []byte, o logtest.Object) ([]byte, error) { return logtest.Append(buf, o) }
func (logged) Decode(raw []byte) (o logtest.Object, err error)     { return o, json.Unmarshal(raw, &o) }
func (logged) Schema() string                                      { return "logged" }
func (logged) UID(o logtest.Object) string                         { return o.UID }

func (logged) Table() Table {
	return Table{Columns: []Column{
		{Name: "uid", Type: "TEXT"}, {Name: "resource_version", Type: "TEXT", Version: true}, {Name: "size", Type: "INTEGER"}, {Name: "ends", Type: "TEXT"},
		{Name: "object_text", Type: "JSON", Wide: true, Fill: "resource_version"}, {Name: "object", Type: "JSON", Expr: `'{"text":' || {object_text} || '}'`},
	}, Indexes: [][]string{{"uid"}}}
}

func (logged) Row(o logtest.Object, _ []byte) (Row, error) {
	text, err := json.Marshal(o.Text)
	return Row{
		Values: []any{o.UID, string(o.Version), len(o.Text), o.Text[max(len(o.Text)-3, 0):], WideValue{Sum: [16]byte(sha256.New().Sum(text)), Make: func() (JSON, error) { return text, nil }}},
		Labels: map[string]string{"ends": o.Text[len(o.Text)-1:], "all": "yes"},
	}, err
}

func init() {
	RegisterRenderer(func(h Holding) Renderer {
		if h.Schema != "logged" {
			return nil
		}
		return func(raw []byte) (map[string]JSON, error) {
			o, err := logged{}.Decode(raw)
			text, _ := json.Marshal(o.Text)
			return map[string]JSON{"object_text": text}, err
		}
	})
}

// keepAll is a history without an end.
var keepAll = History{Age: 1000 * time.Hour}

func logSubject(t *testing.T, opts Options) logtest.Subject {
	dir := directory(t)
	var begin func() logtest.Subject
	begin = func() logtest.Subject {
		db := open(t, dir, opts)
		s, err := NewSink(db, Collection{Name: "objects", Identity: "test"}, logged{})
		must(t, err)
		return logtest.Subject{Sink: s, Log: s.Log(), Bounded: opts.History != keepAll, Reopen: func() logtest.Subject {
			s.Close()
			must(t, db.Close())
			checkSound(t, dir, opts.Key)
			return begin()
		}}
	}
	return begin()
}

// checkSound checks a directory by its checksums.
func checkSound(t *testing.T, dir string, key []byte) {
	t.Helper()
	report, err := Check(t.Context(), dir, key)
	must(t, err)
	for _, f := range report.Findings {
		t.Errorf("check: %s", f)
	}
}

// The log on disk keeps the contract, and so does an encrypted one.
func TestLogConformance(t *testing.T) {
	logtest.Run(t, 2*seeds(), func(t *testing.T) logtest.Subject { return logSubject(t, Options{History: keepAll}) })
}

func TestEncryptedLog(t *testing.T) {
	logtest.Run(t, seeds(), func(t *testing.T) logtest.Subject {
		return logSubject(t, Options{History: keepAll, Key: make([]byte, 32)})
	})
}

// A log that keeps some seconds answers everything after its horizon rightly.
func TestBoundedLog(t *testing.T) {
	logtest.Run(t, seeds(), func(t *testing.T) logtest.Subject {
		return logSubject(t, Options{History: History{Age: 15 * time.Second}})
	})
}

// pastRig is a sink with a history and a clock.
type pastRig struct {
	*testing.T
	dir     string
	db      *DB
	sink    *Sink[logtest.Object]
	now     time.Time
	version int
}

func newPastRig(t *testing.T, h History) *pastRig {
	r := &pastRig{T: t, dir: directory(t), now: time.UnixMilli(1_780_000_000_000)}
	r.open(h)
	return r
}

func (r *pastRig) open(h History) {
	r.Helper()
	r.db = open(r, r.dir, Options{History: h})
	var err error
	r.sink, err = NewSink(r.db, Collection{Name: "objects", Identity: "test"}, logged{})
	must(r, err)
}

func (r *pastRig) reopen(h History) {
	r.Helper()
	r.sink.Close()
	must(r, r.db.Close())
	checkSound(r.T, r.dir, nil)
	r.open(h)
}

// set makes a change of an object a second later; no text deletes it.
func (r *pastRig) set(key tarn.Key, text string) time.Time {
	r.Helper()
	r.now, r.version = r.now.Add(time.Second), r.version+1
	v := tarn.Version(fmt.Sprint(r.version))
	c := tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: r.now, Object: logtest.Object{Key: key, Version: v, UID: "uid of " + string(key), Text: text}}
	if text == "" {
		c.Type, c.Missed = tarn.Delete, true
	}
	must(r, r.sink.Commit(r.Context(), tarn.Batch[logtest.Object]{Changes: []tarn.Change[logtest.Object]{c}, Positions: []tarn.Position{tarn.At(v)}, LastContact: r.now}))
	return r.now
}

func (r *pastRig) query(at Moment, sql string) string {
	r.Helper()
	result, err := at.Query(r.Context(), r.dir, sql, Limits{})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(result.Rows)
}

// SQL shows tables as of a moment: columns, labels and whole objects, in any join.
func TestSQLAsOf(t *testing.T) {
	r := newPastRig(t, keepAll)
	start := r.set("ns/a", "first text of a")
	r.set("ns/b", "first text of b")
	middle := r.set("ns/a", "second text of a!")
	r.set("ns/b", "")
	r.set("ns/c", "text of c")
	const all = "SELECT key, uid, resource_version, size, ends, labels, object_text, object FROM objects ORDER BY key"
	for _, c := range []struct {
		at   Moment
		sql  string
		want string
	}{
		{Moment{Time: start}, all, `[[ns/a uid of ns/a 1 15 f a {"all":"yes","ends":"a"} "first text of a" {"text":"first text of a"}]]`},
		{Moment{Time: middle}, "SELECT key, size FROM objects ORDER BY key", `[[ns/a 17] [ns/b 15]]`},
		{Moment{Time: middle.Add(-time.Millisecond)}, "SELECT key, size FROM objects ORDER BY key", `[[ns/a 15] [ns/b 15]]`},
		{Moment{Time: middle}, "SELECT o.key, l.value FROM objects o JOIN objects_labels l ON l.id = o.id WHERE l.name = 'ends' ORDER BY 1", `[[ns/a !] [ns/b b]]`},
		{Moment{Version: "3"}, "SELECT key, size FROM objects ORDER BY key", `[[ns/a 17] [ns/b 15]]`},
		{Moment{Version: "4"}, "SELECT key FROM objects", `[[ns/a]]`},
		{Moment{Time: r.now}, "SELECT count(*) FROM objects WHERE size > 10", `[[1]]`},
	} {
		if got := r.query(c.at, c.sql); got != c.want {
			t.Errorf("as of %s, %s:\n%s, want\n%s", c.at, c.sql, got, c.want)
		}
	}
	present, past := r.query(Moment{}, all), r.query(Moment{Time: r.now}, all)
	if present != past {
		t.Errorf("the present is\n%s, and as of now\n%s", present, past)
	}
}

func TestSQLHistory(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.set("ns/a", "first text of a")
	r.set("ns/a", "second text of a!")
	r.set("ns/b", "text of b")
	r.set("ns/a", "")
	want := `[[ns/a added 1 1780000001 1780000002 15 {"text":"first text of a"}] [ns/a modified 2 1780000002 1780000004 17 {"text":"second text of a!"}] ` +
		`[ns/b added 3 1780000003 <nil> 9 {"text":"text of b"}] [ns/a deleted 4 1780000004 1780000004 17 {"text":"second text of a!"}]]`
	if got := r.query(Moment{}, "SELECT key, operation, version, CAST(valid_from AS INTEGER), CAST(valid_to AS INTEGER), size, object FROM objects_history ORDER BY seq"); got != want {
		t.Errorf("the history is\n%s, want\n%s", got, want)
	}
	for by, where := range map[string]string{"_by_time": "valid_from > 1780000002", "_by_key": "key = 'ns/a'"} {
		if plan := r.query(Moment{}, "EXPLAIN QUERY PLAN SELECT key, size FROM objects_history WHERE "+where); !strings.Contains(plan, by) {
			t.Errorf("states with %s are found by %s", where, plan)
		}
	}
	if got := r.query(Moment{}, "SELECT key, operation FROM objects_history WHERE valid_from > 1780000002 ORDER BY seq"); got != "[[ns/b added] [ns/a deleted]]" {
		t.Errorf("since a time: %s", got)
	}
}

// clashing has columns that are called as those of the view of states.
type clashing struct{ logged }

func (clashing) Table() Table {
	var t Table
	for _, name := range []string{"resource_version", "Version", "version_column", "operation", "seq", "valid_from", "valid_to"} {
		t.Columns = append(t.Columns, Column{Name: name, Type: "TEXT", Version: name == "resource_version"})
	}
	return t
}

func (clashing) Row(o logtest.Object, _ []byte) (Row, error) {
	return Row{Values: []any{string(o.Version), "v " + o.Text, "vc " + o.Text, "op " + o.Text, "seq " + o.Text, "from " + o.Text, "to " + o.Text}}, nil
}

// The view of states has its own columns under the same names for every resource.
func TestColumnsOfTheSameName(t *testing.T) {
	r := newPastRig(t, keepAll)
	r.sink.Close()
	var err error
	r.sink, err = NewSink(r.db, Collection{Name: "clashes", Identity: "test"}, clashing{})
	must(t, err)
	r.set("ns/a", "x")
	for sql, want := range map[string]string{
		"SELECT version, operation, typeof(valid_from), valid_to, typeof(seq) FROM clashes_history":                                           "[[1 added real <nil> integer]]",
		"SELECT Version_column_column, version_column, operation_column, seq_column, valid_from_column, valid_to_column FROM clashes_history": "[[v x vc x op x seq x from x to x]]",
	} {
		if got := r.query(Moment{}, sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	if got := r.query(Moment{Time: r.now}, "SELECT version, operation, seq, valid_from FROM clashes"); got != "[[v x op x seq x from x]]" {
		t.Errorf("the table as of a moment has %s", got)
	}
}
