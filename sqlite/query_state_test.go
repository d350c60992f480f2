package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// statesOf is what an answer says of the tables that it was read from.
func statesOf(read []TableState) string {
	var all []string
	for _, s := range read {
		all = append(all, fmt.Sprintf("%s@%s synced=%v complete=%v", s.Name, s.Version, s.Synced, s.Complete))
	}
	return strings.Join(all, ", ")
}

// An answer names the tables that the statement really reads, however they are
// written, and no others.
func TestQueriesReportWhatTheyRead(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	must(t, openTabular(t, db, "full").Apply([]tarn.Change[thing]{put("x", 1)}, tarn.At("5")))
	must(t, openTabular(t, db, "filling").Fill([]tarn.Change[thing]{put("x", 1)}, true))
	if err := openTabular(t, db, "torn").Apply([]tarn.Change[thing]{put("x", 1), put("unwritable", 1)}, tarn.At("6")); err == nil {
		t.Fatal("what cannot be written was")
	}
	unsound := tarn.At("7")
	unsound.Complete = false
	must(t, openTabular(t, db, "unsound").Apply([]tarn.Change[thing]{put("x", 1)}, unsound))
	const (
		full    = "full@5 synced=true complete=true"
		filling = "filling@ synced=false complete=false"
	)
	for sql, want := range map[string]string{
		"SELECT 1":                                                        "",
		"SELECT 'filling' AS filling":                                     "",
		"SELECT 1 -- FROM filling":                                        "",
		"SELECT /* FROM filling */ name FROM full":                        full,
		"SELECT name FROM full WHERE name <> 'FROM filling'":              full,
		"WITH filling AS (SELECT 1 AS n) SELECT n FROM filling":           "",
		"WITH unused AS (SELECT name FROM filling) SELECT name FROM full": full,
		"SELECT name, version FROM tarn_collections":                      "",

		"SELECT name FROM filling":                                               filling,
		"SELECT count(*) FROM Filling":                                           filling,
		`SELECT f.name FROM "filling" AS f`:                                      filling,
		"SELECT count(*) FROM filling_labels":                                    filling,
		"SELECT json FROM filling":                                               filling,
		"WITH c AS (SELECT name FROM filling) SELECT * FROM c":                   filling,
		"SELECT (SELECT count(*) FROM filling)":                                  filling,
		"SELECT name FROM full WHERE name IN (SELECT name FROM filling)":         filling + ", " + full,
		"SELECT a.name FROM full a LEFT JOIN filling b USING (name)":             filling + ", " + full,
		"SELECT name FROM full UNION SELECT name FROM filling":                   filling + ", " + full,
		"SELECT name FROM full WHERE EXISTS (SELECT 1 FROM filling WHERE n > 1)": filling + ", " + full,
		"SELECT key FROM tarn_objects_2":                                         filling,
		"SELECT name FROM torn":                                                  "torn@6 synced=true complete=false",
		"SELECT name FROM unsound":                                               "unsound@7 synced=true complete=false",
	} {
		r, err := Query(t.Context(), dir, sql, Limits{})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if got := statesOf(r.Read); got != want {
			t.Errorf("%s reads %q, want %q", sql, got, want)
		}
	}
}

// A view that another tool added, in a file that no process has open, hides no table.
func TestQueriesReportWhatViewsRead(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	must(t, openTabular(t, db, "filling").Fill([]tarn.Change[thing]{put("x", 1)}, true))
	must(t, db.transact(func(conn *sqlite3.Conn) error {
		return conn.Exec("CREATE VIEW inner_view AS SELECT name FROM filling; CREATE VIEW outer_view AS SELECT upper(name) AS name FROM inner_view")
	}))
	r, err := Query(t.Context(), dir, "SELECT * FROM outer_view AS v", Limits{})
	must(t, err)
	if got, want := statesOf(r.Read), "filling@ synced=false complete=false"; got != want {
		t.Errorf("it reads %q, want %q", got, want)
	}
}

// during is a sink that does something at the beginning and at each row.
type during struct {
	begin, row func()
	head       Head
	rows       []string
}

func (d *during) Begin(head Head) error {
	d.head = head
	d.begin()
	return nil
}

func (d *during) Row(values []any) error {
	d.rows = append(d.rows, fmt.Sprintf("%s", values[0]))
	d.row()
	return nil
}

// The state of a table is from the same snapshot as the rows, also if the table is
// written while they are computed.
func TestStatesAreFromTheSnapshotOfTheRows(t *testing.T) {
	dir := directory(t)
	db := open(t, dir, Options{})
	a, b := openTabular(t, db, "a"), openTabular(t, db, "b")
	must(t, a.Apply([]tarn.Change[thing]{put("x", 1), put("y", 2)}, tarn.At("1")))
	must(t, b.Fill([]tarn.Change[thing]{put("x", 1)}, true))
	version := 1
	write := func() {
		version++
		must(t, a.Apply([]tarn.Change[thing]{put(fmt.Sprintf("z%d", version), version)}, tarn.At(tarn.Version(fmt.Sprint(version)))))
		if version == 2 {
			must(t, b.Filled(tarn.At("9")))
		}
	}
	const statement = "SELECT name || ' ' || (SELECT count(*) FROM b) FROM a ORDER BY name"
	sink := &during{begin: write, row: write}
	_, err := Stream(t.Context(), dir, statement, Limits{}, sink)
	must(t, err)
	if want := []string{"x 0", "y 0"}; !slices.Equal(sink.rows, want) {
		t.Errorf("the rows are %q, want %q", sink.rows, want)
	}
	if got, want := statesOf(sink.head.Read), "a@1 synced=true complete=true, b@ synced=false complete=false"; got != want {
		t.Errorf("the states are %q, want %q", got, want)
	}
	r, err := Query(t.Context(), dir, statement, Limits{})
	must(t, err)
	if got, want := statesOf(r.Read), "a@4 synced=true complete=true, b@9 synced=true complete=true"; got != want || len(r.Rows) != 5 {
		t.Errorf("afterwards there are %d rows of %q, want 5 of %q", len(r.Rows), got, want)
	}
}
