package sqlite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// The rows of a list are those of the objects, whatever happens to these.
func TestListsModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir := directory(t) + strconv.Itoa(rapid.Int().Draw(r, "directory"))
		db := open(t, dir, Options{})
		defer db.Close()
		s := openRich(t, db)
		model := map[tarn.Key]int{}
		for step := range rapid.IntRange(1, 8).Draw(r, "steps") {
			var changes []tarn.Change[thing]
			for range rapid.IntRange(0, 6).Draw(r, "changes") {
				key, n := fmt.Sprint("t", rapid.IntRange(0, 4).Draw(r, "key")), rapid.IntRange(0, 40).Draw(r, "n")
				if n > 30 {
					changes = append(changes, gone(key))
					delete(model, tarn.Key(key))
				} else {
					changes = append(changes, put(key, n))
					model[tarn.Key(key)] = n
				}
			}
			must(t, s.Apply(changes, tarn.At(tarn.Version(strconv.Itoa(step+1)))))
		}
		var want []string
		for key, n := range model {
			row, err := rich{}.Row(thing{Name: string(key), N: n}, nil)
			must(t, err)
			raw, _ := row.Values[6].(JSON)
			var tags []any
			_ = json.Unmarshal(raw, &tags) // what is no list has no elements
			for _, tag := range tags {
				if text, ok := tag.(string); ok {
					want = append(want, fmt.Sprintf("%s|%q|<nil>", key, text))
				}
			}
		}
		var got []string
		result, err := Query(t.Context(), dir, "SELECT r.key, l.tag, nullif(coalesce(l.text, ''), coalesce(r.text, '')) FROM things_tags l JOIN things r USING (id)", Limits{})
		must(t, err)
		for _, row := range result.Rows {
			got = append(got, fmt.Sprintf("%s|%q|%v", row[0], row[1], row[2]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			r.Fatalf("the list has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		must(t, db.Close())
		wantOK(t, dir, nil)
	})
}

// before is what an earlier version showed to SQL: other indexes, and no lists.
type before struct{ rich }

func (before) Table() Table {
	t := rich{}.Table()
	t.Indexes, t.Lists = [][]string{{"half"}, {"n", "text"}}, nil
	return t
}

// Content with the indexes and lists of another version is used: this version makes its own
// from the content, and removes those that it no longer needs. That works in both directions.
func TestOtherIndexesInPlace(t *testing.T) {
	dir := directory(t)
	old, err := NewStore(open(t, dir, Options{}), Collection{Name: "things", Identity: "rich", Dictionary: richDictionary}, before{})
	must(t, err)
	var changes []tarn.Change[thing]
	for i := range 30 {
		changes = append(changes, put("ns/thing-"+strconv.Itoa(i), i))
	}
	must(t, old.Apply(changes, tarn.At("7")))
	must(t, old.SetLabel("mine", false))
	must(t, old.c.db.Close())

	indexes := func() string {
		return ask1(t, dir, "SELECT name FROM sqlite_schema WHERE type IN ('index', 'view') AND sql IS NOT NULL AND name LIKE 'things%' ORDER BY 1")
	}
	for round := range 3 {
		db := open(t, dir, Options{})
		s := openRich(t, db)
		if s.Version() != "7" || s.Len() != 30 || s.Label() != "mine" || s.c.note != "" {
			t.Fatalf("round %d: %d things at version %q are there, with the label %q: %s", round, s.Len(), s.Version(), s.Label(), s.c.note)
		}
		if got, want := indexes(), "things things_by_n_text things_by_name things_by_odd_key things_labels things_labels_by_name_value things_tags"; got != want {
			t.Errorf("round %d: there are %s, want %s", round, got, want)
		}
		if got, want := ask1(t, dir, "SELECT count(*), count(DISTINCT tag) FROM things_tags"), "25,3"; got != want {
			t.Errorf("round %d: the list has %s, want %s", round, got, want)
		}
		// Rows whose indexed values were summed for other columns are updated as others are.
		must(t, s.Apply([]tarn.Change[thing]{put("ns/thing-0", 1), put("ns/thing-0", 0), put("ns/thing-1", 1)}, tarn.At("7")))
		must(t, db.Close())
		wantOK(t, dir, nil)
		if round == 1 {
			db := open(t, dir, Options{})
			old, err := NewStore(db, Collection{Name: "things", Identity: "rich", Dictionary: richDictionary}, before{})
			must(t, err)
			if got, want := indexes(), "things things_by_half things_by_n_text things_labels things_labels_by_name_value"; got != want || old.Len() != 30 {
				t.Errorf("back in time there are %s, want %s, and %d things", got, want, old.Len())
			}
			must(t, db.Close())
			wantOK(t, dir, nil)
		}
	}
}

// A Tarn that knows no lists drops a collection without its list. The leftover list does no
// harm.
func TestLeftLists(t *testing.T) {
	for _, known := range []bool{false, true} {
		dir := directory(t)
		db := open(t, dir, Options{})
		if known {
			old, err := NewStore(db, Collection{Name: "things", Identity: "rich", Dictionary: richDictionary}, before{})
			must(t, err)
			must(t, old.Apply([]tarn.Change[thing]{put("a", 0)}, tarn.At("1")))
		}
		must(t, db.Close())
		conn, err := sqlite3.Open(fileURI(dir + "/" + fileName))
		must(t, err)
		must(t, conn.Exec(`CREATE TABLE tarn_list_1_tags (x); INSERT INTO tarn_list_1_tags VALUES (1); CREATE VIEW things_tags AS SELECT x FROM tarn_list_1_tags`))
		must(t, conn.Close())
		db = open(t, dir, Options{})
		s := openRich(t, db)
		must(t, s.Apply([]tarn.Change[thing]{put("a", 0), put("b", 7)}, tarn.At("2")))
		must(t, db.Close())
		if got := ask1(t, dir, "SELECT tag, count(*) FROM things_tags GROUP BY tag"); got != "a,2 b,2" {
			t.Errorf("known %v: the list has %s", known, got)
		}
		wantOK(t, dir, nil)
	}
}

// Rows of a list that are not those of its objects are found, and repaired.
func TestDamagedLists(t *testing.T) {
	for _, sql := range []string{
		"DELETE FROM tarn_list_1_tags WHERE tag='a'", "UPDATE tarn_list_1_tags SET tag='z' WHERE tag='a'", "UPDATE tarn_list_1_tags SET text='z' WHERE tag='a'",
		"INSERT INTO tarn_list_1_tags VALUES ('a', '', 12345, 0)",
	} {
		dir, _ := richDirectory(t, 30, nil)
		all := ask1(t, dir, "SELECT tag, text, id FROM things_tags ORDER BY 1, 2, 3")
		conn, err := sqlite3.Open(fileURI(dir + "/" + fileName))
		must(t, err)
		must(t, conn.Exec(sql))
		must(t, conn.Close())
		report, err := Check(t.Context(), dir, nil)
		must(t, err)
		if report.OK() {
			t.Errorf("%s: nothing is found", sql)
		}
		_, err = Repair(t.Context(), dir, nil)
		must(t, err)
		wantOK(t, dir, nil)
		if got := ask1(t, dir, "SELECT tag, text, id FROM things_tags ORDER BY 1, 2, 3"); got != all {
			t.Errorf("%s: after the repair there is\n%s\nwant\n%s", sql, got, all)
		}
	}
}
