package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/columns"
)

// lostBy commits a batch to a table that lacks what was written before. The sink must refuse
// it, ask for the whole content, and take that.
func (s *Sink[T]) lostBy(t *testing.T, b, all tarn.Batch[T]) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err == nil {
		t.Fatal("the commit succeeded, although rows are missing")
	}
	b.Again = true
	if err := s.Commit(t.Context(), b); !errors.Is(err, tarn.ErrSinkEmpty) {
		t.Fatalf("the second attempt failed with %v, want ErrSinkEmpty", err)
	}
	must(t, s.Commit(t.Context(), all))
}

// A database that is put back to an older state while it is fed, as after a failover to a
// server that did not have the last commits, is noticed by the next batch, also by one that
// only moves the position. What is gone from the history is a gap.
func TestDatabaseWentBack(t *testing.T) {
	for name, next := range map[string]tarn.Batch[object]{"a change": batch("5", thing("d", "5", "")), "a position": batch("5")} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, database(t), Options{History: true})
			s := opened(t, db)
			must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
			exec := func(sql string) {
				_, err := db.pool.Exec(t.Context(), sql)
				must(t, err)
			}
			exec("CREATE TABLE old_feeds AS TABLE tarn_feeds; CREATE TABLE old_things AS TABLE things")
			must(t, s.Commit(t.Context(), batch("3", thing("b", "2", ""), thing("b", "3", ""))))
			must(t, s.Commit(t.Context(), batch("4", thing("c", "4", ""))))
			exec(`DELETE FROM tarn_feeds; INSERT INTO tarn_feeds TABLE old_feeds; DELETE FROM things; INSERT INTO things TABLE old_things; DELETE FROM things_history WHERE seq > 1`)
			all := whole(batch("5", thing("a", "1", ""), thing("b", "3", ""), thing("c", "4", ""), thing("d", "5", "")))
			all.Gaps = []tarn.Gap{{From: "4", To: "5", Cause: tarn.GapReconciled}}
			s.lostBy(t, next, all)
			db.wants(t, "SELECT key, resource_version FROM things ORDER BY key", "a|1", "b|3", "c|4", "d|5")
			db.wants(t, "SELECT from_version, to_version FROM tarn_gaps", "1|5")
			must(t, s.Commit(t.Context(), batch("6", thing("d", "6", ""))))
		})
	}
}

// A table that is dropped while it is fed is made and filled again, also if the feeder of
// another cluster makes it first.
func TestTableDroppedWhileFed(t *testing.T) {
	for name, other := range map[string]bool{"by itself": false, "by another": true} {
		t.Run(name, func(t *testing.T) {
			address := database(t)
			db := connect(t, address, Options{Cluster: "one"})
			s := opened(t, db)
			must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", ""), thing("b", "1", "")))))
			_, err := db.pool.Exec(t.Context(), "DROP TABLE things")
			must(t, err)
			if other {
				opened(t, connect(t, address, Options{Cluster: "two"}))
			}
			s.lostBy(t, batch("2", thing("b", "2", "")), whole(batch("2", thing("a", "1", ""), thing("b", "2", ""))))
			db.wants(t, "SELECT key FROM things ORDER BY key", "a", "b")
		})
	}
}

// A column that the feeder of another cluster has added is filled when this one knows it too.
func TestColumnThatAnotherClusterHasAdded(t *testing.T) {
	address := database(t)
	size := columns.Column{Name: "size", Type: "INTEGER"}
	one, two := connect(t, address, Options{Cluster: "one"}), connect(t, address, Options{Cluster: "two"})
	old := opened(t, one)
	must(t, old.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	newer := NewSink(two, "things", "all", wide{more: []columns.Column{size}})
	must(t, open(t.Context(), newer))
	t.Cleanup(newer.Close)
	old.lostBy(t, batch("2", thing("b", "2", "")), whole(batch("2", thing("a", "1", ""), thing("b", "2", ""))))
	old.Close()
	again := NewSink(one, "things", "all", wide{more: []columns.Column{size}})
	kept, err := again.Open(t.Context(), nil)
	must(t, err)
	t.Cleanup(again.Close)
	if len(kept.Positions) > 0 {
		t.Errorf("the column would stay empty: it begins at %v", kept.Positions)
	}
}

// A row that cannot be decoded is written again with the whole content, and nobody is asked
// to delete it: the object would be missing until its next change.
func TestRowThatCannotBeDecoded(t *testing.T) {
	db := connect(t, database(t), Options{})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "x")))))
	_, err := db.pool.Exec(t.Context(), `UPDATE things SET object = '"nonsense"'`)
	must(t, err)
	if _, err := s.Load(t.Context()); err == nil || strings.Contains(err.Error(), "delete") {
		t.Errorf("Load says %v", err)
	}
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "x")))))
	if all, err := s.Load(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("afterwards it has %v (%v)", all, err)
	}
}

// Somebody drops the whole schema while it is fed, with Tarn's own tables: all are made again.
func TestSchemaDroppedWhileFed(t *testing.T) {
	for name, history := range map[string]bool{"the last state": false, "every state": true} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, database(t), Options{History: history})
			s := opened(t, db)
			must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
			schema := db.query(t, "SELECT current_schema")[0]
			_, err := db.pool.Exec(t.Context(), "DROP SCHEMA "+schema+" CASCADE; CREATE SCHEMA "+schema)
			must(t, err)
			s.lostBy(t, batch("2", thing("b", "2", "")), whole(batch("2", thing("a", "1", ""), thing("b", "2", ""))))
			must(t, s.Commit(t.Context(), batch("3", gone("a", "3"))))
			db.wants(t, "SELECT key FROM things ORDER BY key", "b")
			db.wants(t, "SELECT version FROM tarn_positions", "3")
		})
	}
}
