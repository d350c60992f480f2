package postgres

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/columns"
)

// raw is a codec that writes the text of an object as JSON as it is.
type raw struct{ plain }

func (raw) Row(o object) (Row, error) {
	if o.Text == "cannot be encoded" {
		return Row{}, errors.New("it is not what it seems")
	}
	return Row{Values: []any{o.UID, string(o.Version)}, Object: []byte(o.Text)}, nil
}

// What Postgres refuses is quarantined and named, the rest is committed, and the last good
// state stays.
func TestQuarantine(t *testing.T) {
	for name, bad := range map[string]struct{ text, reason string }{
		"U+0000":            {`{"a": "x\u0000y"}`, "U+0000"},
		"U+0000 in a name":  {`{"a\u0000": 1}`, "U+0000"},
		"an immense number": {`{"a": 1e400000}`, "refused by Postgres"},
		"half a character":  {`{"a": "\ud800"}`, "refused by Postgres"},
		"no JSON":           {`{"a": `, "refused by Postgres"},
		"too deep":          {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), "refused by Postgres"},
		"not encoded":       {"cannot be encoded", "it is not what it seems"},
	} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, database(t), Options{History: true})
			s := NewSink(db, "things", "all", raw{})
			must(t, open(t.Context(), s))
			t.Cleanup(s.Close)
			var all []tarn.Change[object]
			for i := range 20 {
				all = append(all, thing(tarn.Key(fmt.Sprint("k", i)), "1", `{}`))
			}
			must(t, s.Commit(t.Context(), whole(batch("1", all...))))

			err := s.Commit(t.Context(), batch("4", thing("k3", "2", bad.text), thing("k4", "3", `{"good": 1}`), thing("new", "4", bad.text)))
			named, ok := errors.AsType[tarn.ObjectErrors](err)
			if !ok || len(named) != 2 || !strings.Contains(err.Error(), bad.reason) || !strings.Contains(err.Error(), "k3: ") || !strings.Contains(err.Error(), "new: ") {
				t.Fatalf("Commit says %v", err)
			}
			db.wants(t, "SELECT key, resource_version FROM things WHERE key IN ('k3', 'k4', 'new') ORDER BY key", "k3|1", "k4|3")
			db.wants(t, "SELECT key, resource_version, reason LIKE '%"+bad.reason+"%' FROM tarn_quarantine ORDER BY key", "k3|2|true", "new|4|true")
			db.wants(t, "SELECT key, version, problem IS NULL FROM things_history ORDER BY seq OFFSET 20", "k3|2|false", "k4|3|true", "new|4|false")

			// A process that begins here reads everything, and adds no state twice.
			s.Close()
			kept, err := s.Open(t.Context(), nil)
			must(t, err)
			if len(kept.Positions) != 1 || kept.Positions[0].Complete {
				t.Errorf("it begins at %+v", kept.Positions)
			}
			if err := s.Commit(t.Context(), batch("4", thing("k3", "2", bad.text))); !tarn.Taken(err) || err == nil {
				t.Errorf("the second time it is %v", err)
			}
			deleted := thing("new", "6", bad.text)
			deleted.Type = tarn.Delete
			must(t, s.Commit(t.Context(), batch("6", thing("k3", "5", `{"good": 2}`), deleted)))
			db.wants(t, "SELECT key FROM tarn_quarantine")
			db.wants(t, "SELECT key, resource_version FROM things WHERE key IN ('k3', 'new')", "k3|5")
			db.wants(t, "SELECT key, operation, version FROM things_history ORDER BY seq OFFSET 23", "k3|added|5", "new|deleted|6")
		})
	}
}

// wants compares the rows of a statement.
func (db *DB) wants(t *testing.T, sql string, want ...string) {
	t.Helper()
	if got := db.query(t, sql); !slices.Equal(got, want) {
		t.Errorf("%s\nhas  %q,\nwant %q", sql, got, want)
	}
}

// A key that is no text does not stop the others.
func TestQuarantineOfKeys(t *testing.T) {
	db := connect(t, database(t), Options{})
	s := opened(t, db)
	err := s.Commit(t.Context(), whole(batch("1", thing("a\x00b", "1", ""), thing("\xff", "1", ""), thing("good", "1", ""))))
	if named, ok := errors.AsType[tarn.ObjectErrors](err); !ok || len(named) != 2 {
		t.Errorf("Commit says %v", err)
	}
	db.wants(t, "SELECT key FROM things", "good")
}

// Keys that Postgres cannot have are not mistaken for each other, nor for one that it has.
// A key that is too long for an index does not stop the others.
func TestKeysThatCannotBe(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	long := tarn.Key(randomText(8000))
	err := s.Commit(t.Context(), whole(batch("1", thing("\xfe", "1", ""), thing("\xff", "1", ""), thing("\uFFFD", "1", ""), thing(long, "1", ""), thing("good", "1", ""))))
	if named, ok := errors.AsType[tarn.ObjectErrors](err); !ok || len(named) != 3 {
		t.Fatalf("Commit says %.500v", err)
	}
	db.wants(t, "SELECT count(*) FROM tarn_quarantine", "3")
	must(t, s.Commit(t.Context(), batch("2", gone("\xfe", "2"), gone(long, "2"))))
	db.wants(t, `SELECT key FROM things ORDER BY key COLLATE "C"`, "good", "\uFFFD")
	db.wants(t, `SELECT left(key, 6), resource_version FROM tarn_quarantine`, `"\xff"|1`)
	db.wants(t, "SELECT operation, count(*) FROM things_history GROUP BY 1 ORDER BY 1", "added|5", "deleted|2")
}

// indexed is a codec whose text has a column with an index.
type indexed struct{ plain }

func (indexed) Columns() []columns.Column {
	return append(plain{}.Columns(), columns.Column{Name: "text", Type: "TEXT", Index: true})
}

func (indexed) Row(o object) (Row, error) {
	row, err := plain{}.Row(o)
	row.Values = append(row.Values, o.Text)
	return row, err
}

// randomText cannot be compressed much.
func randomText(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()
}

// A value that only an index refuses is found too: of an object that is there already, and of
// one with a good state before it in the same batch. A state that is not the last one is in
// the history, which has no such index.
func TestQuarantineByAnIndex(t *testing.T) {
	for _, history := range []bool{false, true} {
		db := connect(t, database(t), Options{History: history})
		s := NewSink(db, "things", "all", indexed{})
		must(t, open(t.Context(), s))
		t.Cleanup(s.Close)
		must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "x"), thing("b", "1", "x")))))
		long := randomText(30_000)
		err := s.Commit(t.Context(), batch("8", thing("a", "2", long), thing("b", "3", "y"), thing("c", "4", "x"), thing("c", "5", long), thing("d", "6", long), thing("d", "7", "x")))
		if named, ok := errors.AsType[tarn.ObjectErrors](err); !ok || len(named) != 2 {
			t.Fatalf("Commit says %v", err)
		}
		db.wants(t, "SELECT key, resource_version FROM things ORDER BY key", "a|1", "b|3", "d|7")
		db.wants(t, "SELECT key FROM tarn_quarantine ORDER BY key", "a", "c")
		if history {
			db.wants(t, "SELECT key, version FROM things_history WHERE problem IS NULL AND version > '1' ORDER BY key, version", "b|3", "c|4", "d|6", "d|7")
		}
	}
}

// hasNUL finds what a decoder finds.
func FuzzNUL(f *testing.F) {
	for _, text := range []string{`"\u0000"`, `"\\u0000"`, `"\\\u0000"`, `{"\u0000": 1}`, `"u0000"`, `"\u00001"`, `["\\\\u0000", "\\\\\u0000"]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		if want := containsNUL(v); hasNUL([]byte(text)) != want {
			t.Errorf("%s: want %v", text, want)
		}
	})
}

func containsNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "\x00")
	case []any:
		return slices.ContainsFunc(v, containsNUL)
	case map[string]any:
		for name, inner := range v {
			if strings.Contains(name, "\x00") || containsNUL(inner) {
				return true
			}
		}
	}
	return false
}

// A value that does not fit its column is NULL, or text.
func TestConverted(t *testing.T) {
	for _, c := range []struct {
		value any
		kind  string
		want  any
	}{
		{true, bigint, int64(1)}, {false, bigint, int64(0)}, {int64(7), bigint, int64(7)}, {7.0, bigint, int64(7)}, {7.5, bigint, nil}, {"7", bigint, nil}, {nil, bigint, nil}, {1e300, bigint, nil},
		{int64(7), double, 7.0}, {7.5, double, 7.5}, {"x", double, nil}, {"x", jsonb, nil},
		{"x", text, "x"}, {int64(7), text, "7"}, {true, text, "true"}, {columns.JSON(`{}`), text, "{}"}, {"a\x00b\xff", text, "a\uFFFDb\uFFFD"}, {nil, text, nil},
	} {
		if got := converted(c.value, c.kind); got != c.want {
			t.Errorf("%v as %s is %v, want %v", c.value, c.kind, got, c.want)
		}
	}
}
