package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// A directory of format 9 is converted when it is opened, and shows the same past as before.
// Its history continues, and is pruned.
func TestDirectoryOfFormat9(t *testing.T) {
	dir := oldDirectory(t, 9)
	want, err := os.ReadFile("testdata/format7.txt") // it was converted from that one
	must(t, err)
	r := &pastRig{T: t, dir: dir, now: time.UnixMilli(1_780_000_300_000), version: 300}
	r.open(History{Age: time.Hour})
	checkSound(t, dir, nil)
	if got := pastIn(t, dir); got != string(want) {
		t.Errorf("the past is\n%s\nwant\n%s", got, want)
	}
	before := r.query(Moment{}, "SELECT count(*) FROM objects_history")
	for n := range 20 {
		r.set(tarn.Key(fmt.Sprint("ns/", n%10)), fmt.Sprint("text ", n))
	}
	if got, want := r.query(Moment{Version: "320"}, "SELECT count(*), min(ends), max(ends) FROM objects"), "[[10  10  19]]"; got != want {
		t.Errorf("as of now there is %s, want %s", got, want)
	}
	r.now = r.now.Add(2 * time.Hour)
	r.set("ns/0", "after two hours")
	checkSound(t, dir, nil)
	if got := r.query(Moment{}, "SELECT count(*) FROM objects_history"); got != "[[11]]" {
		t.Errorf("of %s states, %s are left after two hours; want those of ten objects, and the new one", before, got)
	}
	r.reopen(History{Age: time.Hour})
	must(t, r.db.Close())
}

// Moving states that was killed is continued. Until then the past is not shown, and nothing is
// found to be wrong.
func TestMoveIsContinued(t *testing.T) {
	defer func(n int64) { convertedAtOnce = n }(convertedAtOnce)
	convertedAtOnce = 40
	dir := oldDirectory(t, 9)
	want, err := os.ReadFile("testdata/format7.txt")
	must(t, err)
	steps := 0
	for more := true; more && steps < 3; steps++ {
		conn, err := sqlite3.Open(filepath.Join(dir, fileName))
		must(t, err)
		must(t, migrate(conn, nil, &progress{}))
		more, err = moveSome(conn, 1)
		must(t, err)
		must(t, closeAll(conn))
		checkSound(t, dir, nil)
		if _, err := Query(t.Context(), dir, "SELECT count(*) FROM objects_history", Limits{}); !errors.Is(err, changelog.ErrAhead) {
			t.Fatalf("after %d steps it says %v", steps, err)
		}
	}
	must(t, open(t, dir, Options{History: keepAll}).Close())
	checkSound(t, dir, nil)
	if got := pastIn(t, dir); got != string(want) {
		t.Errorf("the past is\n%s\nwant\n%s", got, want)
	}
}

// What was damaged before states were moved is damaged after it.
func TestMoveOfADamagedState(t *testing.T) {
	for _, damage := range []string{
		"UPDATE tarn_states_1 SET body=randomblob(20) WHERE seq=(SELECT seq FROM tarn_states_1 WHERE body IS NOT NULL ORDER BY seq DESC LIMIT 1 OFFSET 9)",
		"DELETE FROM tarn_states_1 WHERE seq=(SELECT seq FROM tarn_states_1 WHERE op=2 ORDER BY seq DESC LIMIT 1 OFFSET 9)",
		"UPDATE tarn_logs SET horizon=horizon+1",
	} {
		dir := oldDirectory(t, 9)
		path := filepath.Join(dir, fileName)
		sql(damage)(t, nil, path)
		conn, err := sqlite3.Open(path)
		must(t, err)
		must(t, migrate(conn, nil, &progress{}))
		must(t, (&DB{}).moveStates(conn, &progress{}))
		must(t, closeAll(conn))
		report, err := Check(t.Context(), dir, nil)
		if err != nil || report.OK() {
			t.Errorf("%s: nothing is found (%v)", damage, err)
		}
	}
}
