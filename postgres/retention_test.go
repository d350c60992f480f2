package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// asOf is what the history says that there was at a moment, by the question of
// docs/engines.md.
func (db *DB) asOf(t *testing.T, at time.Time) string {
	t.Helper()
	moment := "'" + at.Format(time.RFC3339Nano) + "'"
	return strings.Join(db.query(t, `SELECT s.key, s.version FROM tarn_histories h, LATERAL (
			SELECT DISTINCT ON (p.key) p.key, p.version, p.operation FROM things_history p
			WHERE p.cluster = h.cluster AND p.heard <= `+moment+` ORDER BY p.key, p.seq DESC) s
		WHERE h.cluster = 'default' AND h.resource = 'things' AND h.since <= `+moment+` AND s.operation <> 'deleted' ORDER BY s.key`), " ")
}

// While a history is pruned in steps, it says of every moment from its horizon on what there
// was, as one that is not pruned does, and has one state of an object before the horizon at
// most.
func TestRetention(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	db := connect(t, database(t), Options{History: true, HistoryAge: time.Hour})
	s := opened(t, db)
	s.retained = time.Now() // not yet
	begun := time.Now().Add(-3 * time.Hour).Truncate(time.Second)
	there := map[tarn.Key]bool{}
	var changes []tarn.Change[object]
	for i := range 4 * pruneStep {
		key := tarn.Key(fmt.Sprintf("k%02d", dice.IntN(60)))
		c := thing(key, tarn.Version(fmt.Sprint(i+1)), "")
		switch {
		case !there[key]:
			there[key] = true
		case dice.IntN(3) == 0:
			c.Type, there[key] = tarn.Delete, false
		default:
			c.Type = tarn.Update
		}
		c.Heard = begun.Add(time.Duration(i) * 2 * time.Second)
		changes = append(changes, c)
	}
	must(t, s.Commit(t.Context(), whole(batch("5000", changes...))))
	// The feed began before its states, as one does that keeps a history.
	_, err := db.pool.Exec(t.Context(), "UPDATE tarn_feeds SET history_since = $1", begun.Add(-time.Second))
	must(t, err)
	var moments []time.Time
	before := map[time.Time]string{}
	for m := begun; m.Before(begun.Add(3 * time.Hour)); m = m.Add(7 * time.Minute) {
		moments, before[m] = append(moments, m), db.asOf(t, m)
	}

	var horizon time.Time
	for step := 0; ; step++ {
		s.retained = time.Time{}
		must(t, s.Commit(t.Context(), batch("5000")))
		last := horizon
		must(t, db.pool.QueryRow(t.Context(), "SELECT since FROM tarn_histories WHERE resource = 'things'").Scan(&horizon))
		if !last.Before(horizon) {
			t.Fatalf("step %d moves the horizon from %s to %s", step, last, horizon)
		}
		for _, m := range moments {
			if !m.Before(horizon) && db.asOf(t, m) != before[m] {
				t.Errorf("after step %d, the history says that there was %s at %s, and it was %s", step, db.asOf(t, m), m, before[m])
			}
		}
		if !s.retained.IsZero() {
			if step < 1 {
				t.Error("everything was pruned in one step")
			}
			break
		}
	}
	if age := time.Since(horizon); age < time.Hour || age > time.Hour+time.Minute {
		t.Errorf("the history is complete for %s", age)
	}
	db.wants(t, `SELECT count(*) FROM (SELECT FROM things_history, tarn_histories WHERE heard <= since GROUP BY key HAVING count(*) > 1 OR bool_or(operation = 'deleted')) s`, "0")
	first := slices.IndexFunc(moments, func(m time.Time) bool { return !m.Before(horizon) })
	if first <= 0 || db.asOf(t, moments[first-1]) != "" || before[moments[first-1]] == "" {
		t.Error("a question about a moment before the horizon has an answer")
	}
	db.wants(t, "SELECT count(*) < 2100 FROM things_history", "true") // an hour has 1,800
}

// A history without a bound keeps everything, and says since when it is there.
func TestHistoryWithoutBound(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	old := thing("a", "1", "")
	old.Heard = time.Now().Add(-1000 * time.Hour)
	must(t, s.Commit(t.Context(), whole(batch("2", old, thing("a", "2", "")))))
	must(t, s.Commit(t.Context(), batch("3")))
	db.wants(t, "SELECT count(*) FROM things_history", "2")
	db.wants(t, "SELECT resource, since BETWEEN now() - interval '1 min' AND clock_timestamp() FROM tarn_histories", "things|true")
}

// An object whose delete has an earlier time than the state before it, because a clock was
// set back, does not come back when the delete is pruned.
func TestRetentionAfterAClockWasSetBack(t *testing.T) {
	db := connect(t, database(t), Options{History: true, HistoryAge: time.Hour})
	s := opened(t, db)
	s.retained = time.Now() // not yet
	heard := func(ago time.Duration, c tarn.Change[object]) tarn.Change[object] {
		c.Heard = time.Now().Add(-ago)
		return c
	}
	must(t, s.Commit(t.Context(), whole(batch("3", heard(3*time.Hour, thing("a", "1", "")), heard(2*time.Hour, thing("a", "2", "")), heard(150*time.Minute, gone("a", "3"))))))
	_, err := db.pool.Exec(t.Context(), "UPDATE tarn_feeds SET history_since = now() - interval '4 hours'")
	must(t, err)
	for i, age := range []time.Duration{130 * time.Minute, time.Hour} {
		db.opts.HistoryAge, s.retained = age, time.Time{}
		must(t, s.Commit(t.Context(), batch(tarn.Version(fmt.Sprint(4+i)))))
		if got := db.asOf(t, time.Now()); got != "" {
			t.Errorf("with a horizon %s ago there is %s", age, got)
		}
	}
	db.wants(t, "SELECT version FROM things_history")
}
