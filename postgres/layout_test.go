package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tarnproject/tarn/kube/columns"
)

// wide is a codec with columns of its own.
type wide struct {
	plain
	more []columns.Column
}

func (w wide) Columns() []columns.Column { return append(w.plain.Columns(), w.more...) }

func (w wide) Row(o object) (Row, error) {
	row, err := w.plain.Row(o)
	for range w.more {
		row.Values = append(row.Values, int64(7))
	}
	return row, err
}

// Tables of an older version are brought to the newest one, by one of several processes
// that begin at once, and tables of a newer version are left alone.
func TestMigrations(t *testing.T) {
	address := database(t)
	steps := append(migrations[:len(migrations):len(migrations)],
		`ALTER TABLE tarn_feeds ADD COLUMN added integer; UPDATE tarn_feeds SET added = 1`,
		`ALTER TABLE tarn_feeds RENAME COLUMN added TO renamed`)
	old := connect(t, address, Options{})
	must(t, old.Claim(t.Context(), "things"))
	var all sync.WaitGroup
	for range 4 {
		db := connect(t, address, Options{})
		all.Go(func() {
			if err := db.migrateTo(t.Context(), steps); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	old.wants(t, "SELECT resource, renamed FROM tarn_feeds", "things|1")
	old.wants(t, "SELECT version FROM tarn_schema", fmt.Sprint(len(steps)))
	if err := connect(t, address, Options{}).Claim(t.Context(), "things"); err == nil || !strings.Contains(err.Error(), fmt.Sprint("version ", len(steps))) || !strings.Contains(err.Error(), "newer tarn") {
		t.Errorf("an older program is told %v", err)
	}
}

// A step that fails leaves the version before.
func TestFailedMigration(t *testing.T) {
	db := connect(t, database(t), Options{})
	must(t, db.Claim(t.Context(), "things"))
	err := db.migrateTo(t.Context(), append(migrations[:len(migrations):len(migrations)], `CREATE TABLE half (x integer)`, `nonsense`))
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint("step ", len(migrations)+2)) {
		t.Errorf("it says %v", err)
	}
	db.wants(t, "SELECT version, to_regclass('half') IS NULL FROM tarn_schema", fmt.Sprint(len(migrations), "|true"))
}

// A table that somebody changed is noticed, and what to do is said.
func TestTableChangedByHand(t *testing.T) {
	for change, says := range map[string]string{
		"ALTER TABLE things DROP COLUMN uid":                                                                             "the column uid is missing",
		"ALTER TABLE things ADD COLUMN mine text":                                                                        "the column mine is new",
		"ALTER TABLE things ALTER COLUMN labels TYPE text":                                                               "the column labels is text and was jsonb",
		"ALTER TABLE things DROP CONSTRAINT things_pkey":                                                                 "its primary key is not (cluster, key)",
		"ALTER TABLE things_history DROP COLUMN heard":                                                                   "things_history was changed by hand: the column heard is missing",
		"DROP TABLE things; CREATE TABLE things (x text)":                                                                "the column x is new",
		"DELETE FROM tarn_tables WHERE name = 'things'":                                                                  "that Tarn has not made",
		"ALTER TABLE things DROP CONSTRAINT things_pkey, ADD PRIMARY KEY (key)":                                          "its primary key is not (cluster, key)",
		"ALTER TABLE things ALTER COLUMN uid SET NOT NULL":                                                               "the column uid may not be NULL",
		"ALTER TABLE things DROP COLUMN uid, ADD COLUMN uid text GENERATED ALWAYS AS (key) STORED":                       "the column uid is generated",
		"ALTER TABLE things_history ALTER COLUMN seq DROP IDENTITY":                                                      "the column seq is not numbered by itself",
		"CREATE RULE lazy AS ON INSERT TO things DO INSTEAD NOTHING":                                                     "it has the rule lazy",
		"CREATE TRIGGER same BEFORE UPDATE ON things FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()": "it has the trigger same",
		"ALTER TABLE things FORCE ROW LEVEL SECURITY":                                                                    "row level security",
		"ALTER TABLE things SET UNLOGGED":                                                                                "it is not logged",
		"ALTER TABLE things RENAME TO hidden; CREATE VIEW things AS SELECT * FROM hidden":                                "it has the rule _RETURN",
		"ALTER TABLE things RENAME COLUMN resource_version TO revision":                                                  "the column resource_version is missing, the column revision is new",
	} {
		t.Run(change, func(t *testing.T) {
			db := connect(t, database(t), Options{History: true})
			s := NewSink(db, "things", "all", plain{})
			must(t, open(t.Context(), s))
			defer s.Close()
			labelsIndex := ""
			if strings.Contains(change, "labels") {
				labelsIndex = "DROP INDEX things_labels_idx; "
			}
			_, err := db.pool.Exec(t.Context(), labelsIndex+change)
			must(t, err)
			if err := open(t.Context(), s); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// A table that somebody dropped is made and filled again; indexes of users do not matter.
func TestDroppedTable(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	_, err := db.pool.Exec(t.Context(), "CREATE INDEX mine ON things (uid); DROP TABLE things")
	must(t, err)
	kept, err := s.Open(t.Context(), nil)
	must(t, err)
	if len(kept.Positions) > 0 {
		t.Errorf("without its rows it begins at %v", kept.Positions)
	}
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	db.wants(t, "SELECT key FROM things", "a")
}

// Columns come and go with versions and definitions: new ones are filled for all objects,
// those of another cluster stay, and a type that changes becomes text.
func TestColumnsChange(t *testing.T) {
	address := database(t)
	db := connect(t, address, Options{History: true})
	begin := func(db *DB, more ...columns.Column) (*Sink[object], bool) {
		s := NewSink(db, "things", "all", wide{more: more})
		kept, err := s.Open(t.Context(), nil)
		must(t, err)
		return s, len(kept.Positions) > 0
	}
	first, _ := begin(db)
	must(t, first.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	first.Close()

	number := columns.Column{Name: "size", Type: "INTEGER", Index: true}
	second, resumes := begin(db, number)
	if resumes {
		t.Error("the new column would stay empty")
	}
	must(t, second.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	db.wants(t, "SELECT key, size FROM things", "a|7")
	second.Close()
	if again, resumes := begin(db, number); !resumes {
		t.Error("the same columns are built twice")
	} else {
		again.Close()
	}

	other := connect(t, address, Options{History: true, Cluster: "other"})
	third, _ := begin(other, columns.Column{Name: "size", Type: "TEXT"}, columns.Column{Name: "cluster", Type: "TEXT"}, columns.Column{Name: "seq", Type: "REAL"})
	must(t, third.Commit(t.Context(), whole(batch("1", thing("b", "1", "")))))
	third.Close()
	db.wants(t, "SELECT cluster, key, size, cluster_, seq_ FROM things ORDER BY key", "default|a|7||", "other|b|7|7|7")
	db.wants(t, "SELECT cluster, key, size FROM things_history ORDER BY seq", "default|a|", "other|b|7")

	fourth, _ := begin(db)
	must(t, fourth.Commit(t.Context(), whole(batch("2", thing("a", "2", "")))))
	fourth.Close()
}

// Long names are shortened, each to another one.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 100)
	db := connect(t, database(t), Options{History: true})
	for _, name := range []string{long, long + "y"} {
		s := NewSink(db, name, "all", wide{more: []columns.Column{{Name: long, Type: "TEXT", Index: true}, {Name: long + "z", Type: "TEXT", Index: true}}})
		must(t, open(t.Context(), s))
		must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
		s.Close()
	}
	db.wants(t, "SELECT count(*) FROM tarn_tables", "4")
}

// A custom resource may have printer columns called as the columns that Postgres has in each
// table, such as XMin, and as words of SQL.
func TestColumnsOfAnyName(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	var more []columns.Column
	for _, name := range []string{"xmin", "xmax", "cmin", "cmax", "ctid", "tableoid", "oid", "user", "select"} {
		more = append(more, columns.Column{Name: name, Type: "INTEGER", Index: true})
	}
	s := NewSink(db, "things", "all", wide{more: more})
	must(t, open(t.Context(), s))
	t.Cleanup(s.Close)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", ""), thing("b", "1", "")))))
	must(t, s.Commit(t.Context(), batch("2", gone("a", "2"))))
	db.wants(t, `SELECT key, xmin_, xmax_, cmin_, cmax_, ctid_, tableoid_, oid, "user", "select" FROM things`, "b|7|7|7|7|7|7|7|7|7")
	db.wants(t, `SELECT key, xmin_, ctid_ FROM things_history ORDER BY seq`, "a|7|7", "b|7|7", "a|7|7")
}
