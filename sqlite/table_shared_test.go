package sqlite

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// siblings shows things with a value that their names and numbers go into.
type siblings struct{ things }

func (siblings) Table() Table {
	return Table{Columns: []Column{{Name: "spec", Type: "JSON", Wide: true, Shared: true}}}
}

func (siblings) Row(o thing, _ []byte) (Row, error) {
	raw := specOf(o)
	sum := sha256.Sum256(raw)
	part := WideValue{Sum: [16]byte(sum[:]), Make: func() (JSON, error) { return raw, nil }, Words: []string{o.Name, "", fmt.Sprint("number-", o.N)}}
	if o.Pad == "none" {
		part = WideValue{}
	}
	return Row{Values: []any{part}}, nil
}

func specOf(o thing) JSON {
	raw, _ := json.Marshal(map[string]string{"host": o.Name + ".example", "volume": o.Name, "n": fmt.Sprint("number-", o.N), "template": o.Pad})
	return raw
}

func TestSharedColumn(t *testing.T) {
	db := open(t, directory(t), Options{})
	s, err := NewStore(db, Collection{Name: "things", Identity: "test"}, siblings{})
	must(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		must(t, s.Replace(nil, tarn.At("0")))
		model := map[tarn.Key]thing{}
		for range rapid.IntRange(1, 6).Draw(rt, "batches") {
			var changes []tarn.Change[thing]
			for range rapid.IntRange(1, 5).Draw(rt, "changes") {
				// Names that are part of another name, or of the template.
				name := rapid.SampledFrom([]string{"a", "web", "web-0", "template", "ü\"{}"}).Draw(rt, "name")
				o := thing{Name: name, N: rapid.IntRange(0, 2).Draw(rt, "n"), Pad: rapid.SampledFrom([]string{"", "web-0 a web", "none"}).Draw(rt, "pad")}
				if rapid.IntRange(0, 4).Draw(rt, "gone") == 0 {
					changes = append(changes, gone(name))
					delete(model, tarn.Key(name))
					continue
				}
				changes = append(changes, tarn.Change[thing]{Type: tarn.Update, Key: tarn.Key(name), Object: o})
				model[tarn.Key(name)] = o
			}
			must(t, s.Apply(changes, tarn.At("1")))
			const stray = "(SELECT count(*) FROM tarn_wide_1_spec_values WHERE id NOT IN (SELECT value FROM tarn_wide_1_spec WHERE value IS NOT NULL))"
			found, err := db.Query(t.Context(), "SELECT key, spec FROM things UNION ALL SELECT 'stray values', "+stray, Limits{})
			must(t, err)
			want := map[string]any{"stray values": int64(0)}
			for key, o := range model {
				if want[string(key)] = any(string(specOf(o))); o.Pad == "none" {
					want[string(key)] = nil
				}
			}
			got := map[string]any{}
			for _, row := range found.Rows {
				got[row[0].(string)] = row[1]
			}
			if len(found.Rows) != len(got) || !maps.Equal(got, want) {
				rt.Errorf("SQL shows %v, want %v", found.Rows, want)
			}
		}
	})
}

func TestSharedValuesAreKeptOnce(t *testing.T) {
	db := open(t, directory(t), Options{})
	s, err := NewStore(db, Collection{Name: "things", Identity: "test"}, siblings{})
	must(t, err)
	template := strings.Repeat("long ", 1000)
	var items []tarn.Item[thing]
	for i := range 100 {
		name := fmt.Sprint("pod-", i)
		items = append(items, tarn.Item[thing]{Meta: tarn.Meta{Key: tarn.Key(name)}, Object: thing{Name: name, N: i, Pad: template}})
	}
	must(t, s.Replace(items, tarn.At("1")))
	found, err := db.Query(t.Context(), "SELECT (SELECT count(*) FROM tarn_wide_1_spec_values), count(*), sum(length(spec)) > 500000 FROM things", Limits{})
	must(t, err)
	if got := fmt.Sprint(found.Rows[0]); got != "[1 100 1]" {
		t.Errorf("values, rows, and whether each shows its own: %s", got)
	}
	must(t, s.Replace(nil, tarn.At("2")))
	found, err = db.Query(t.Context(), "SELECT count(*) FROM tarn_wide_1_spec_values", Limits{})
	must(t, err)
	if found.Rows[0][0] != int64(0) {
		t.Errorf("%v values are left of nothing", found.Rows[0][0])
	}
}

// stamped shows things with a value that their name goes into, from its own column.
type stamped struct{ things }

func (stamped) Table() Table {
	return Table{Columns: []Column{{Name: "name", Type: "TEXT"}, {Name: "spec", Type: "JSON", Wide: true, Fill: "name"}}}
}

func (stamped) Row(o thing, _ []byte) (Row, error) {
	sum := sha256.Sum256([]byte(o.Pad))
	part := WideValue{Sum: [16]byte(sum[:]), Make: func() (JSON, error) { return JSON(`{"name":"` + Hole + `","pad":"` + o.Pad + `"}`), nil }}
	name := any(o.Name)
	if o.Name == "" {
		name = nil
	}
	return Row{Values: []any{name, part}}, nil
}

// A value shows what another column has, though it is not written again.
func TestFilledColumn(t *testing.T) {
	db := open(t, directory(t), Options{})
	s, err := NewStore(db, Collection{Name: "things", Identity: "test"}, stamped{})
	must(t, err)
	for i, o := range []thing{{Name: "first", Pad: "x"}, {Name: "second", Pad: "x"}, {Pad: "x"}, {Name: "first", Pad: "y"}} {
		must(t, s.Apply([]tarn.Change[thing]{{Type: tarn.Update, Key: "a", Object: o}}, tarn.At(tarn.Version(fmt.Sprint(i)))))
		found, err := db.Query(t.Context(), "SELECT spec FROM things", Limits{})
		must(t, err)
		if want := fmt.Sprintf(`{"name":%q,"pad":%q}`, o.Name, o.Pad); found.Rows[0][0] != want {
			t.Errorf("the value is %v, want %s", found.Rows[0][0], want)
		}
	}
}

func TestFillFromNoColumn(t *testing.T) {
	name := Column{Name: "name", Type: "TEXT"}
	for _, columns := range [][]Column{
		{{Name: "spec", Type: "JSON", Wide: true, Fill: "name"}},
		{name, {Name: "spec", Type: "JSON", Fill: "name"}},
		{name, {Name: "spec", Type: "JSON", Wide: true, Shared: true, Fill: "name"}},
		{{Name: "name", Type: "TEXT", Wide: true}, {Name: "spec", Type: "JSON", Wide: true, Fill: "name"}},
	} {
		if err := (Table{Columns: columns}).validate("things"); err == nil || !strings.Contains(err.Error(), `has Fill "name"`) {
			t.Errorf("%v: the error is %v", columns, err)
		}
	}
}
