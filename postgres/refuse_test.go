package postgres

import (
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
			db.wants(t, "SELECT key, version, problem IS NULL FROM things_history WHERE seq > 20 ORDER BY seq", "k3|2|false", "k4|3|true", "new|4|false")

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
			db.wants(t, "SELECT key, operation, version FROM things_history WHERE seq > 23 ORDER BY seq", "k3|added|5", "new|deleted|6")
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
