package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// Each state is in the history once, in order, deletes included, with what is known of it.
func TestHistory(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("2", thing("a", "1", ""), thing("b", "2", "")))))
	again := thing("a", "3", "repaired")
	again.Rewound, again.Type, again.Heard = true, tarn.Update, time.Now()
	next := batch("6", again, gone("b", "4"), thing("b", "5", ""), gone("b", "6"))
	must(t, s.Commit(t.Context(), next))
	next.Again = true // the acknowledgement was lost
	must(t, s.Commit(t.Context(), next))
	missed := tarn.Change[object]{Type: tarn.Delete, Key: "a", Version: "3", Missed: true}
	back := batch("2", missed, thing("c", "2", ""))
	back.Positions[0].Epoch = "restored"
	back.Gaps = []tarn.Gap{{From: "6", To: "2", Cause: tarn.GapRewound}}
	must(t, s.Commit(t.Context(), back))
	db.wants(t, "SELECT key, operation, version, epoch, inferred, rewound, uid, heard > now() - interval '1 min' FROM things_history ORDER BY seq",
		"a|added|1||false|false|uid-a|true", "b|added|2||false|false|uid-b|true",
		"a|modified|3||false|true|uid-a|true", "b|deleted|4||false|false|uid-b|true", "b|added|5||false|false|uid-b|true", "b|deleted|6||false|false|uid-b|true",
		"a|deleted|3|restored|true|false||true", "c|added|2|restored|false|false|uid-c|true")
	db.wants(t, "SELECT key, uid, resource_version, epoch, inferred FROM tarn_tombstones ORDER BY key", "a|uid-a|3|restored|true", "b|uid-b|6||false")
	db.wants(t, "SELECT section, epoch, from_version, to_version, cause FROM tarn_gaps", "|restored|6|2|rewound")
	db.wants(t, "SELECT resource, section, epoch, version, complete FROM tarn_positions", "things||restored|2|true")
}

// A repair at the same position whose commit failed is not mistaken for one that succeeded.
func TestRepairIsTriedAgain(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "wrong")))))
	repair := thing("a", "1", "right")
	repair.Type, repair.Rewound = tarn.Update, true
	b := batch("1", repair)
	s.batch = "a batch whose commit never came to the server"
	b.Again = true
	must(t, s.Commit(t.Context(), b))
	db.wants(t, "SELECT operation, rewound FROM things_history ORDER BY seq", "added|false", "modified|true")
	loaded, err := s.Load(t.Context())
	if err != nil || len(loaded) != 1 || loaded[0].Object.Text != "right" {
		t.Errorf("the table has %+v (%v)", loaded, err)
	}
}

// A whole state adds to the history only what differs, and deletes that nobody saw. Rows
// that have it already are not written.
func TestWholeStateWritesDifferences(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("3", thing("a", "1", ""), thing("b", "2", ""), thing("c", "3", "")))))
	written := db.query(t, "SELECT key, xmin FROM things WHERE key <> 'c' ORDER BY key")
	must(t, s.Commit(t.Context(), whole(batch("9", thing("a", "1", ""), thing("b", "2", ""), thing("d", "9", "")))))
	db.wants(t, "SELECT key, xmin FROM things WHERE key <> 'd' ORDER BY key", written...)
	db.wants(t, "SELECT key, operation, inferred FROM things_history WHERE seq > 3 ORDER BY operation", "d|added|false", "c|deleted|true")
	db.wants(t, "SELECT key, inferred FROM tarn_tombstones", "c|true")
}

// A history that begins later has first what is there, and a gap before it.
func TestHistoryBeginsLater(t *testing.T) {
	address := database(t)
	without := connect(t, address, Options{})
	s := NewSink(without, "things", "all", plain{})
	must(t, open(t.Context(), s))
	must(t, s.Commit(t.Context(), whole(batch("2", thing("a", "1", ""), thing("b", "2", "")))))
	s.Close()
	db := connect(t, address, Options{History: true})
	for range 2 {
		with := NewSink(db, "things", "all", plain{})
		kept, err := with.Open(t.Context(), nil)
		must(t, err)
		if len(kept.Positions) != 1 || !kept.Positions[0].Complete {
			t.Errorf("it begins at %v", kept.Positions)
		}
		with.Close()
	}
	db.wants(t, "SELECT key, operation, version FROM things_history ORDER BY key", "a|kept|1", "b|kept|2")
	db.wants(t, "SELECT from_version, to_version, cause FROM tarn_gaps", "|2|no history")
}

// With other selectors the whole content is compared.
func TestOtherSelection(t *testing.T) {
	db := connect(t, database(t), Options{})
	for _, c := range []struct {
		selection string
		resumes   bool
	}{{"all", false}, {"all", true}, {"some", false}, {"some", true}} {
		s := NewSink(db, "things", c.selection, plain{})
		kept, err := s.Open(t.Context(), nil)
		must(t, err)
		if (len(kept.Positions) > 0) != c.resumes {
			t.Errorf("%s begins at %v", c.selection, kept.Positions)
		}
		must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
		s.Close()
	}
}

// Old tombstones are removed.
func TestTombstonesEnd(t *testing.T) {
	db := connect(t, database(t), Options{Tombstones: time.Hour})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", ""), thing("b", "1", "")))))
	must(t, s.Commit(t.Context(), batch("2", gone("a", "2"))))
	_, err := db.pool.Exec(t.Context(), "UPDATE tarn_tombstones SET deleted_at = now() - interval '2 hours'")
	must(t, err)
	s.pruned = time.Time{}
	must(t, s.Commit(t.Context(), batch("3", gone("b", "3"))))
	db.wants(t, "SELECT key FROM tarn_tombstones", "b")
	must(t, s.Commit(t.Context(), batch("4", thing("b", "4", ""))))
	db.wants(t, "SELECT key FROM tarn_tombstones")
}

// An address that is wrong is said to be so, without its password.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:secret@h/d":                            "postgres://u:xxxxx@h/d",
		"postgres://u@h/d?password=secret&sslmode=disable":   "postgres://u@h/d?password=xxxxx&sslmode=disable",
		"postgres://h/d?application_name=me&search_path=one": "postgres://h/d?application_name=me&search_path=one",
		"postgres://u:sec\nret@h/d":                          "(unreadable)",
		"postgres:u:secret@h/d":                              "(unreadable)",
		"host=h password=secret dbname=d":                    "host=h password=xxxxx dbname=d",
		`host=h password = 'sec\'re t' sslpassword=secret`:   "host=h password = xxxxx sslpassword=xxxxx",
	} {
		if got := Redacted(address); got != want {
			t.Errorf("%q is shown as %q, want %q", address, got, want)
		}
	}
	if _, err := Connect("postgres://u:secret@h:x/d", Options{}); err == nil || errors.Is(err, tarn.ErrStopped) {
		t.Errorf("a port that is none: %v", err)
	}
	for _, address := range []string{"postgres://u:sec@ret@h:x/d", "host=h password = sec@ret sslmode=bogus", "postgres:u:sec@ret@h/d", "postgres://u:sec@ret@h/d?sslmode=bogus"} {
		if _, err := Connect(address, Options{}); err == nil || strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "ret@") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Options that cannot hold are refused before a server is asked.
func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{Lease: time.Nanosecond}, {Lease: -time.Second}, {History: true, HistoryAge: -1}, {Tombstones: -1}, {BatchSize: -1}, {MaxBytes: -1}} {
		if db, err := Connect("postgres://127.0.0.1:1/d", o); err == nil {
			db.Close()
			t.Errorf("%+v was taken", o)
		}
	}
}

// The delete of an object that is in quarantine is in the history, also if it was inferred and
// has the version that was refused.
func TestDeleteOfAnObjectInQuarantine(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := NewSink(db, "things", "all", raw{})
	must(t, open(t.Context(), s))
	t.Cleanup(s.Close)
	const bad = `{"a": "\u0000"}`
	if err := s.Commit(t.Context(), whole(batch("2", thing("a", "1", bad), thing("b", "2", `{}`)))); !tarn.Taken(err) {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), batch("3", thing("b", "3", bad))); !tarn.Taken(err) {
		t.Fatal(err)
	}
	a, b := thing("a", "1", bad), thing("b", "3", bad)
	a.Type, a.Missed, b.Type, b.Missed = tarn.Delete, true, tarn.Delete, true
	must(t, s.Commit(t.Context(), batch("4", a, b)))
	db.wants(t, "SELECT key, operation, version FROM things_history ORDER BY seq", "a|added|1", "b|added|2", "b|added|3", "a|deleted|1", "b|deleted|3")
}

// A whole state that is followed by a delete, in one batch, has the delete once, as the sink
// received it.
func TestWholeStateWithADelete(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", ""), thing("b", "1", "")))))
	must(t, s.Commit(t.Context(), whole(batch("2", thing("a", "1", ""), gone("a", "2")))))
	db.wants(t, "SELECT key, operation, version, inferred FROM things_history WHERE seq > 2 ORDER BY key", "a|deleted|2|false", "b|deleted|1|true")
	db.wants(t, "SELECT key, resource_version, inferred FROM tarn_tombstones ORDER BY key", "a|2|false", "b|1|true")
}

// While no history was kept, objects were deleted that it had: they are not alive in the one
// that follows. An object in quarantine, which has no row, still is.
func TestHistoryThatEndedAndBeginsAgain(t *testing.T) {
	address := database(t)
	run := func(history bool, all ...tarn.Batch[object]) {
		s := NewSink(connect(t, address, Options{History: history}), "things", "all", raw{})
		must(t, open(t.Context(), s))
		defer s.Close()
		for _, b := range all {
			if err := s.Commit(t.Context(), b); !tarn.Taken(err) {
				t.Fatal(err)
			}
		}
	}
	run(true, whole(batch("3", thing("a", "1", `{}`), thing("b", "2", `{}`), thing("bad", "3", `{"a": "\u0000"}`))), batch("4", thing("gone", "4", `{}`)), batch("5", gone("gone", "5")))
	run(false, batch("6", gone("a", "6")))
	run(true, batch("7", thing("c", "7", `{}`)))
	db := connect(t, address, Options{})
	db.wants(t, `SELECT DISTINCT ON (key) key, operation, version, inferred FROM things_history ORDER BY key, seq DESC`,
		"a|deleted|1|true", "b|kept|2|", "bad|added|3|false", "c|added|7|false", "gone|deleted|5|false")
	db.wants(t, "SELECT to_version, cause FROM tarn_gaps WHERE cause = 'no history' ORDER BY id DESC LIMIT 1", "6|no history")
}

// Deletes that nobody saw are of the epoch in which they were found, also if nothing is left.
func TestEpochOfInferredDeletes(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	in := func(b tarn.Batch[object], positions ...tarn.Position) tarn.Batch[object] {
		b.Positions = positions
		return b
	}
	a, b := tarn.Position{Section: "a", Epoch: "one", Version: "2", Complete: true}, tarn.Position{Section: "b", Epoch: "one", Version: "2", Complete: true}
	must(t, s.Commit(t.Context(), in(whole(batch("2", thing("a/x", "1", ""), thing("b/x", "2", ""))), a, b)))
	a.Epoch = "two"
	must(t, s.Commit(t.Context(), in(whole(batch("2", thing("c", "2", ""))), a, b)))
	must(t, s.Commit(t.Context(), in(whole(batch("1")), tarn.Position{Epoch: "three", Version: "1", Complete: true})))
	db.wants(t, "SELECT key, epoch FROM things_history WHERE operation = 'deleted' ORDER BY key", "a/x|two", "b/x|one", "c|three")
	db.wants(t, "SELECT key, epoch FROM tarn_tombstones ORDER BY key", "a/x|two", "b/x|one", "c|three")
}
