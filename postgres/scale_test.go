package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tarnproject/tarn"
)

// What is deleted is found by joins, also by a whole state that lacks many rows: a look-up for
// each row would read the whole batch each time, and 100,000 of them would take hours.
func TestDeletesAreJoined(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	var old []tarn.Change[object]
	for i := range 3000 {
		old = append(old, thing(tarn.Key(fmt.Sprint("old", i)), "1", ""))
	}
	must(t, s.Commit(t.Context(), whole(batch("1", old...))))
	for _, all := range []bool{true, false} {
		b := batch("2", old...)
		err := db.transaction(t.Context(), func(tx pgx.Tx) error {
			if err := newStaging(s, b).copy(t.Context(), tx); err != nil {
				return err
			}
			args := []any{db.opts.Cluster, s.table.name}
			if all {
				args = append(args, "{}") // the epochs
			}
			rows, err := tx.Query(t.Context(), "EXPLAIN "+s.deleteSQL(all), args...)
			if err != nil {
				return err
			}
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if text := strings.Join(plan, "\n"); strings.Contains(text, "SubPlan") {
				t.Errorf("whole %v:\n%s", all, text)
			}
			return err
		})
		must(t, err)
	}
	must(t, s.Commit(t.Context(), whole(batch("3", thing("new", "3", "")))))
	db.wants(t, "SELECT key FROM things", "new")
	db.wants(t, "SELECT count(*) FROM tarn_tombstones", "3000")
	db.wants(t, "SELECT operation, inferred, count(*) FROM things_history GROUP BY 1, 2 ORDER BY 1, 2", "added|false|3001", "deleted|true|3000")
}
