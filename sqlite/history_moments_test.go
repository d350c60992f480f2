package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog/logtest"
)

// commitMany commits changes of a hundred objects, one after the other. The clock may go
// back between them.
func (r *pastRig) commitMany(random *rand.Rand, n int, jumps bool) {
	r.Helper()
	b := tarn.Batch[logtest.Object]{}
	for range n {
		key := tarn.Key(fmt.Sprint("ns/", random.IntN(100)))
		r.version++
		if r.now = r.now.Add(time.Duration(random.IntN(20)) * time.Millisecond); jumps && random.IntN(500) == 0 {
			r.now = r.now.Add(-time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		v := tarn.Version(fmt.Sprint(r.version))
		b.Changes = append(b.Changes, tarn.Change[logtest.Object]{Type: tarn.Update, Key: key, Version: v, Heard: r.now, Object: logtest.Object{Key: key, Version: v, UID: "uid of " + string(key), Text: "text"}})
	}
	b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(fmt.Sprint(r.version)))}, r.now
	must(r, r.sink.Commit(r.Context(), b))
}

// checkTimes compares the places of random times with those that all entries tell. It does
// the same with versions, which grow here with the entries.
func checkTimes(t *testing.T, random *rand.Rand, dir string) {
	t.Helper()
	all := pastOf(t, dir)
	view, err := OpenReader(dir, nil)
	must(t, err)
	defer view.Close()
	bounds, err := view.Log("objects").Bounds(t.Context())
	must(t, err)
	for range 200 {
		at := all[random.IntN(len(all))].Heard.Add(time.Duration(random.IntN(40)-20) * time.Millisecond)
		if at.Before(bounds.Since) {
			continue
		}
		want := bounds.First
		for _, e := range all {
			if !e.Heard.After(at) {
				want = max(want, e.Seq)
			}
		}
		if got, err := view.Log("objects").AtTime(t.Context(), at); err != nil || got.Seq != want {
			t.Fatalf("the place of %s is %d (%v), want %d", at, got.Seq, err, want)
		}
		e := all[random.IntN(len(all))]
		if got, err := view.Log("objects").AtVersion(t.Context(), e.Version); err != nil || got.Seq != e.Seq {
			t.Fatalf("the place of version %s is %d (%v), want %d", e.Version, got.Seq, err, e.Seq)
		}
	}
}

// The commit of a relist or of a first state has many entries. Its times are found as
// quickly as others, because it is several moments, and as exactly.
func TestTimesInLargeCommits(t *testing.T) {
	for _, jumps := range []bool{false, true} {
		t.Run(fmt.Sprint("the clock goes back ", jumps), func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 9))
			r := &pastRig{T: t, dir: directory(t), now: time.UnixMilli(1_780_000_000_000)}
			r.db = open(t, r.dir, Options{History: keepAll})
			var err error
			r.sink, err = NewSink(r.db, Collection{Name: "objects", Identity: "test"}, untabled{})
			must(t, err)
			for _, n := range []int{150, 5000, 20, 2500} {
				r.commitMany(random, n, jumps)
			}
			r.sink.Close()
			must(t, r.db.Close())
			checkSound(t, r.dir, nil)
			checkTimes(t, random, r.dir)
			if n := moments(t, r.dir, fmt.Sprintf("seq-first>%d", 2*mostEntries)); n > 0 {
				t.Errorf("%d moments have more than %d entries", n, mostEntries)
			}
			if n := moments(t, r.dir, "number IS NULL"); n > 0 {
				t.Errorf("the versions of %d moments are not known, and all grow", n)
			}
			toFormat6(t, r.dir)
			if n := moments(t, r.dir, "true"); n != 4 {
				t.Fatalf("format 6 has %d moments", n)
			}
			must(t, open(t, r.dir, Options{History: keepAll}).Close())
			checkSound(t, r.dir, nil)
			checkTimes(t, random, r.dir)
			if n := moments(t, r.dir, fmt.Sprintf("seq-first>%d", 2*mostEntries)); n > 0 {
				t.Errorf("after the migration %d moments have more than %d entries", n, mostEntries)
			}
		})
	}
}

// untabled is logged without a table, so that bases have no values of columns, as in
// formats before 8.
type untabled struct{}

func (untabled) Append(buf []byte, o logtest.Object) ([]byte, error) { return logged{}.Append(buf, o) }
func (untabled) Decode(raw []byte) (logtest.Object, error)           { return logged{}.Decode(raw) }
func (untabled) Schema() string                                      { return logged{}.Schema() }
func (untabled) UID(o logtest.Object) string                         { return o.UID }

// toFormat6 makes a directory of format 6: one moment for each commit, without a checksum.
func toFormat6(t *testing.T, dir string) {
	t.Helper()
	sql(strings.Join([]string{
		"DROP TABLE tarn_bundles",
		"DELETE FROM tarn_moments_1 WHERE seq NOT IN (300, 10300, 10340, 15340)",
		"UPDATE tarn_moments_1 SET first = 1 + coalesce((SELECT max(b.seq) FROM tarn_moments_1 b WHERE b.seq < tarn_moments_1.seq), 0)",
		"UPDATE tarn_moments_1 SET low_ms = (SELECT min(heard_ms) FROM tarn_states_1 s WHERE s.seq BETWEEN tarn_moments_1.first AND tarn_moments_1.seq)",
		"UPDATE tarn_moments_1 SET low_ms = NULL WHERE low_ms >= (SELECT min(heard_ms) FROM tarn_states_1 s WHERE s.seq > tarn_moments_1.seq)",
		"CREATE TABLE old (life INTEGER NOT NULL, seq INTEGER NOT NULL, version, heard_ms INTEGER NOT NULL, until_ms INTEGER, op INTEGER NOT NULL, base INTEGER NOT NULL, cols BLOB, sum BLOB NOT NULL, body BLOB, PRIMARY KEY (life, seq)) WITHOUT ROWID",
		"INSERT INTO old SELECT life, seq, version, heard_ms, until_ms, op, base, cols, sum, body FROM tarn_states_1",
		"DROP TABLE tarn_states_1",
		"ALTER TABLE old RENAME TO tarn_states_1",
		"CREATE INDEX tarn_states_1_by_seq ON tarn_states_1 (seq)",
		"ALTER TABLE tarn_logs RENAME COLUMN pruned TO cursor",
		"ALTER TABLE tarn_logs RENAME COLUMN thinning TO visited_ms",
		"ALTER TABLE tarn_logs RENAME COLUMN every_ms TO round",
		"ALTER TABLE tarn_moments_1 DROP COLUMN sum",
		"ALTER TABLE tarn_bases_1 DROP COLUMN cols",
		"ALTER TABLE tarn_dictionaries DROP COLUMN sum",
		oldColumnsDDL(1),
		"UPDATE tarn_format SET value=6 WHERE name='format'",
		"PRAGMA user_version=6",
	}, ";"))(t, nil, filepath.Join(dir, fileName))
}

func moments(t *testing.T, dir, where string) int64 {
	t.Helper()
	conn, err := sqlite3.Open(filepath.Join(dir, fileName))
	must(t, err)
	defer conn.Close()
	n, err := number(conn, "SELECT count(*) FROM tarn_moments_1 WHERE "+where)
	must(t, err)
	return n
}

// A moment that was changed is noticed when somebody looks for its time or its version.
func TestDamagedMoments(t *testing.T) {
	r := newPastRig(t, keepAll)
	var times []time.Time
	for i := range 20 {
		times = append(times, r.set("ns/a", fmt.Sprint("text ", i)))
	}
	r.sink.Close()
	must(t, r.db.Close())
	for _, damage := range []string{
		"UPDATE tarn_moments_1 SET first=first+1", "UPDATE tarn_moments_1 SET low_ms=low_ms+1", "UPDATE tarn_moments_1 SET low_ms=low_ms-2000", "UPDATE tarn_moments_1 SET low_ms=NULL",
		"UPDATE tarn_moments_1 SET number=number+1", "UPDATE tarn_moments_1 SET number=NULL", "UPDATE tarn_moments_1 SET epoch=epoch+1", "UPDATE tarn_moments_1 SET bytes=bytes+1",
		"UPDATE tarn_moments_1 SET sum=NULL", "DELETE FROM tarn_moments_1",
	} {
		for _, n := range []int{1, 9, 19} {
			dir := copyOf(t, r.dir)
			sql(fmt.Sprintf("%s WHERE seq=(SELECT seq FROM tarn_moments_1 ORDER BY seq LIMIT 1 OFFSET %d)", damage, n))(t, nil, filepath.Join(dir, fileName))
			for _, at := range []Moment{{Time: times[n]}, {Version: tarn.Version(fmt.Sprint(n + 1))}} {
				if _, err := at.Query(t.Context(), dir, "SELECT count(*) FROM objects", Limits{}); !errors.Is(err, errBadRow) {
					t.Errorf("%s, the moment %d, as of %s: it says %v", damage, n, at, err)
				}
			}
		}
	}
}
