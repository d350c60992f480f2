package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/changelog/logtest"
)

// logDamages are what can happen to a history. lost is the least number of states that are
// lost, or -1 if the whole log is.
var logDamages = []struct {
	name string
	do   func(t testing.TB, random *rand.Rand, path string)
	lost int
}{
	{"a state", sql("UPDATE tarn_states_1 SET body=randomblob(20) WHERE seq=(SELECT seq FROM tarn_states_1 WHERE body IS NOT NULL LIMIT 1 OFFSET 9)"), 1},
	{"the version of a state", sql("UPDATE tarn_states_1 SET version=version+1 WHERE seq=(SELECT seq FROM tarn_states_1 LIMIT 1 OFFSET 9)"), 1},
	{"a base", sql("UPDATE tarn_bases_1 SET body=randomblob(20) WHERE id=3"), 1},
	{"a base is gone", sql("DELETE FROM tarn_bases_1 WHERE id=3"), 1},
	{"a state is gone", sql("DELETE FROM tarn_states_1 WHERE seq=(SELECT seq FROM tarn_states_1 LIMIT 1 OFFSET 9)"), 1},
	{"the values of columns of a state", sql("UPDATE tarn_states_1 SET cols=randomblob(9) WHERE seq=(SELECT seq FROM tarn_states_1 WHERE cols IS NOT NULL LIMIT 1 OFFSET 9)"), 1},
	{"the values of columns of a state are gone", sql("UPDATE tarn_states_1 SET cols=NULL WHERE seq=(SELECT seq FROM tarn_states_1 WHERE cols IS NOT NULL LIMIT 1 OFFSET 9)"), 1},
	{"the values of columns of a base", sql("UPDATE tarn_bases_1 SET cols=randomblob(20) WHERE id=3"), 1},
	{"the values of columns of a base are gone", sql("UPDATE tarn_bases_1 SET cols=NULL WHERE id=3"), 1},
	{"a life", sql("UPDATE tarn_lives_1 SET key='ns/other' WHERE id=3"), 1},
	{"a life is gone", sql("DELETE FROM tarn_lives_1 WHERE id=3"), 1},
	{"a moment is gone", sql("DELETE FROM tarn_moments_1 WHERE seq=(SELECT seq FROM tarn_moments_1 LIMIT 1 OFFSET 9)"), 0},
	{"the time of a moment", sql("UPDATE tarn_moments_1 SET low_ms=low_ms+100000 WHERE seq=(SELECT seq FROM tarn_moments_1 LIMIT 1 OFFSET 9)"), 0},
	{"a time before that of the moment before", sql("UPDATE tarn_moments_1 SET low_ms=1 WHERE seq=(SELECT seq FROM tarn_moments_1 LIMIT 1 OFFSET 9)"), 0},
	{"the version of a moment", sql("UPDATE tarn_moments_1 SET number=number+1 WHERE seq=(SELECT seq FROM tarn_moments_1 LIMIT 1 OFFSET 9)"), 0},
	{"the epoch of a moment", sql("UPDATE tarn_moments_1 SET epoch=epoch+1 WHERE seq=(SELECT seq FROM tarn_moments_1 LIMIT 1 OFFSET 9)"), 0},
	{"the last moments are gone", sql("DELETE FROM tarn_moments_1 WHERE seq>(SELECT seq FROM tarn_moments_1 LIMIT 1 OFFSET 9)"), 0},
	{"a gap", sql("UPDATE tarn_log_gaps SET cause='none'"), 0},
	{"an object of the content", sql("UPDATE tarn_objects_1 SET sum=randomblob(16) WHERE id=(SELECT max(id) FROM tarn_objects_1)"), 0},
	{"the row of the log", sql("UPDATE tarn_logs SET states=states+1"), -1},
	{"bits", raw(func(random *rand.Rand, b []byte) []byte {
		for range 3 {
			b[pageSize+random.IntN(len(b)-pageSize)] ^= 1 << random.IntN(8)
		}
		return b
	}), 0},
	{"a page of zeros", raw(func(random *rand.Rand, b []byte) []byte {
		at := (1 + random.IntN(len(b)/pageSize-1)) * pageSize
		clear(b[at : at+pageSize])
		return b
	}), 0},
}

// Check finds all damage of a history, and Repair saves the states that can be read: each as
// it was, and what is lost lies in a gap.
func TestRepairSavesTheHistory(t *testing.T) {
	r := newPastRig(t, keepAll)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		key := tarn.Key(fmt.Sprint("ns/", random.IntN(12)))
		text := strings.Repeat(fmt.Sprint("text ", i, " "), 1+random.IntN(60))
		if random.IntN(10) == 0 {
			text = ""
		}
		r.set(key, text)
	}
	b := tarn.Batch[logtest.Object]{Gaps: []tarn.Gap{{From: "200", To: "201", Cause: tarn.GapFolded}}, Positions: []tarn.Position{tarn.At("201")}, LastContact: r.now}
	must(t, r.sink.Commit(t.Context(), b))
	all := pastOf(t, r.dir)
	must(t, r.db.Close())
	for _, damage := range logDamages {
		t.Run(damage.name, func(t *testing.T) {
			rounds, found := 1, 0
			if damage.name == "bits" || damage.name == "a page of zeros" {
				rounds = seeds()
			}
			for seed := range uint64(rounds) {
				dir := copyOf(t, r.dir)
				damage.do(t, rand.New(rand.NewPCG(seed, 7)), filepath.Join(dir, fileName))
				report, err := Check(t.Context(), dir, nil)
				must(t, err)
				if !report.OK() {
					found++
				}
				done, err := Repair(t.Context(), dir, nil)
				if err != nil {
					if rounds == 1 || !strings.Contains(err.Error(), "could not be repaired") {
						t.Errorf("seed %d: Repair says %v", seed, err)
					}
					continue
				}
				if again, err := Check(t.Context(), dir, nil); err != nil || !again.OK() {
					t.Errorf("seed %d: after the repair is found %v, %v", seed, again.Findings, err)
				}
				if done.States["objects"] == 0 {
					if damage.lost >= 0 && rounds == 1 {
						t.Errorf("no states were saved: %v", report.Findings)
					}
					continue
				}
				compareSaved(t, seed, dir, all, damage.lost)
			}
			if found == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

func pastOf(t *testing.T, dir string) (all []changelog.Entry) {
	t.Helper()
	view, err := OpenReader(dir, nil)
	must(t, err)
	defer view.Close()
	bounds, err := view.Log("objects").Bounds(t.Context())
	must(t, err)
	for e, err := range view.Log("objects").After(t.Context(), bounds.First) {
		must(t, err)
		all = append(all, e)
	}
	return all
}

// compareSaved compares the states that were saved with all.
func compareSaved(t *testing.T, seed uint64, dir string, all []changelog.Entry, lost int) {
	t.Helper()
	saved, gaps := map[changelog.Seq]changelog.Entry{}, []changelog.Gap(nil)
	last := all[len(all)-1].Seq
	for _, e := range pastOf(t, dir) {
		if e.Gap != nil {
			gaps = append(gaps, *e.Gap)
		} else {
			saved[e.Seq] = e
		}
	}
	missing := 0
	for _, e := range all {
		got, ok := saved[e.Seq]
		delete(saved, e.Seq)
		switch {
		case e.Gap != nil:
		case ok && (got.Key != e.Key || got.Version != e.Version || string(got.Object) != string(e.Object) || got.Operation != e.Operation || !got.Heard.Equal(e.Heard)):
			t.Errorf("seed %d: the state at %d is %v, and was %v", seed, e.Seq, got.State, e.State)
		case !ok:
			missing++
			covered := false
			for _, g := range gaps {
				covered = covered || g.Cause == changelog.GapDamaged && (g.Covers(e.Heard) || !g.Until.After(e.Heard) && g.Until.Equal(e.Heard))
			}
			if !covered {
				t.Errorf("seed %d: the state of %s at version %s is lost, and no gap says so: %v", seed, e.Key, e.Version, gaps)
			}
		}
	}
	for seq, e := range saved {
		if seq <= last {
			t.Errorf("seed %d: there is a state that never was: %v", seed, e.State)
		}
	}
	if missing < lost {
		t.Errorf("seed %d: %d states are lost, and the damage was to %d at least", seed, missing, lost)
	}
	// A repaired log can be written to, and what it says of the present is right.
	db := open(t, dir, Options{History: keepAll})
	defer db.Close()
	s, err := NewSink(db, Collection{Name: "objects", Identity: "test"}, logged{})
	must(t, err)
	c := tarn.Change[logtest.Object]{Type: tarn.Update, Key: "ns/1", Version: "300", Heard: time.Now(), Object: logtest.Object{Key: "ns/1", Version: "300", UID: "uid of ns/1", Text: "after the repair"}}
	must(t, s.Commit(t.Context(), tarn.Batch[logtest.Object]{Changes: []tarn.Change[logtest.Object]{c}, Positions: []tarn.Position{tarn.At("300")}, LastContact: time.Now()}))
	const present = "SELECT key, resource_version, size, ends, labels, object FROM objects ORDER BY key"
	now, err1 := db.Query(t.Context(), present, Limits{})
	past, err2 := Moment{Time: time.Now().Add(time.Second)}.Query(t.Context(), dir, present, Limits{})
	must(t, first(err1, err2))
	if fmt.Sprint(now.Rows) != fmt.Sprint(past.Rows) {
		t.Errorf("seed %d: the present is\n%v, and as of now\n%v", seed, now.Rows, past.Rows)
	}
	checkSound(t, dir, nil)
}
