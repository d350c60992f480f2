package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// takes commits a batch as a replica does: what fails is tried again, and a sink that asks for
// the whole content gets it.
func (s *Sink[T]) takes(t *testing.T, b, all tarn.Batch[T]) {
	t.Helper()
	var err error
	for range 4 {
		if err = s.Commit(t.Context(), b); err == nil {
			return
		}
		if b.Again = true; errors.Is(err, tarn.ErrSinkEmpty) {
			b = all
		}
	}
	t.Fatal(err)
}

// Somebody drops one of the tables or views, while it is fed or before a restart. It is made
// again, everything is as in the cluster afterwards, and what is lost with it is a gap.
func TestAnyTableDropped(t *testing.T) {
	relations := []string{"TABLE things", "TABLE things_history", "VIEW tarn_positions", "VIEW tarn_histories", "TABLE tarn_feeds",
		"TABLE tarn_tables", "TABLE tarn_gaps", "TABLE tarn_tombstones", "TABLE tarn_quarantine", "TABLE tarn_schema",
		"TABLE tarn_feeds, tarn_gaps, tarn_quarantine, tarn_tombstones, tarn_schema"}
	for _, dropped := range relations {
		for _, fed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, fed: %v", dropped, fed), func(t *testing.T) {
				address := database(t)
				db := connect(t, address, Options{History: true})
				s := NewSink(db, "things", "all", plain{})
				must(t, open(t.Context(), s))
				unwritable := thing("bad\x00", "1", "")
				if err := s.Commit(t.Context(), whole(batch("3", unwritable, thing("a", "1", ""), thing("b", "2", ""), thing("c", "3", "")))); !isObjectErrors(err) {
					t.Fatal(err)
				}
				must(t, s.Commit(t.Context(), batch("4", gone("c", "4"))))
				drop := func() {
					_, err := db.pool.Exec(t.Context(), "DROP "+dropped+" CASCADE")
					must(t, err)
				}
				if fed {
					drop()
				}
				changed := batch("6", thing("a", "5", ""), gone("b", "6"), thing("d", "6", ""))
				changed.Gaps = []tarn.Gap{{From: "4", To: "5", Cause: tarn.GapFolded}}
				all := whole(batch("6", thing("a", "5", ""), thing("d", "6", "")))
				all.Gaps = changed.Gaps
				s.takes(t, changed, all)
				s.Close()
				if !fed {
					drop()
				}

				// A restart: another process, without what this one knows.
				again := NewSink(connect(t, address, Options{History: true}), "things", "all", plain{})
				kept, err := again.Open(t.Context(), nil)
				must(t, err)
				defer again.Close()
				db.wants(t, "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'v') AND (relname LIKE 'tarn_%' OR relname LIKE 'things%')", "10")
				if !fed && slices.Contains([]string{"TABLE things", "TABLE tarn_feeds", "TABLE tarn_quarantine"}, dropped) && len(kept.Positions) > 0 {
					t.Errorf("without the table it resumes at %v", kept.Positions)
				}
				if !fed && dropped == "TABLE tarn_gaps" {
					db.wants(t, "SELECT from_version, to_version, cause FROM tarn_gaps", "|6|gaps dropped")
				}
				next, all := batch("7", thing("e", "7", "")), whole(batch("7", thing("a", "5", ""), thing("d", "6", ""), thing("e", "7", "")))
				if len(kept.Positions) == 0 {
					next = all
				}
				again.takes(t, next, all)
				db.wants(t, "SELECT key, resource_version FROM things ORDER BY key", "a|5", "d|6", "e|7")
				db.wants(t, "SELECT version FROM tarn_positions", "7")
				db.wants(t, `SELECT key, version FROM (SELECT DISTINCT ON (key) * FROM things_history WHERE problem IS NULL ORDER BY key, seq DESC) last
					WHERE operation <> 'deleted' ORDER BY key`, "a|5", "d|6", "e|7")
				if begins := strings.Contains(dropped, "tarn_feeds"); !begins || fed { // else its history says since when it is complete
					db.wants(t, "SELECT count(*) > 0 FROM tarn_gaps", "true")
				}
				if err := open(t.Context(), again); err != nil {
					t.Errorf("another start: %v", err)
				}
			})
		}
	}
}

func isObjectErrors(err error) bool {
	_, ok := errors.AsType[tarn.ObjectErrors](err)
	return ok
}
