package sqlite

import (
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// oldDirectory makes a directory of format 7, 8 or 9: nine objects that came, changed and went
// for five minutes. Older states of them were pruned and thinned out.
func oldDirectory(t *testing.T, format int) string {
	t.Helper()
	packed, err := os.Open(fmt.Sprintf("testdata/format%d.db.gz", format))
	must(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	must(t, err)
	dir := directory(t)
	must(t, os.MkdirAll(dir, 0o700))
	raw, err := io.ReadAll(unpacked)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, fileName), raw, 0o600))
	return dir
}

// pastIn is what SQL shows of the past: every state, and sums as of the time of each.
func pastIn(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	history, err := Query(t.Context(), dir, "SELECT seq, id, key, operation, version, valid_from, valid_to, uid, size, ends, labels, object_text FROM objects_history ORDER BY seq", Limits{})
	must(t, err)
	for _, row := range history.Rows {
		row[len(row)-1] = crc32.ChecksumIEEE(fmt.Append(nil, row[len(row)-1]))
		fmt.Fprintln(&b, row...)
	}
	for _, row := range history.Rows[10:] {
		at := time.UnixMilli(int64(row[5].(float64)*1000 + 0.5))
		then, err := Moment{Time: at}.Query(t.Context(), dir, "SELECT count(*), sum(size), min(ends), max(resource_version), group_concat(labels) FROM objects", Limits{})
		must(t, err)
		fmt.Fprintln(&b, append([]any{"as of", row[0]}, then.Rows[0]...)...)
	}
	return b.String()
}

// A directory of format 7 is converted when it is opened, and shows the same past as
// before. Its history continues.
func TestDirectoryOfFormat7(t *testing.T) {
	dir := oldDirectory(t, 7)
	want, err := os.ReadFile("testdata/format7.txt")
	must(t, err)
	r := &pastRig{T: t, dir: dir, now: time.UnixMilli(1_780_000_300_000), version: 300}
	r.open(keepAll)
	checkSound(t, dir, nil)
	if got := pastIn(t, dir); got != string(want) {
		t.Errorf("the past is\n%s\nwant\n%s", got, want)
	}
	begin := r.query(Moment{Version: "300"}, "SELECT key, size, ends FROM objects ORDER BY key")
	for n := range 20 {
		r.set(tarn.Key(fmt.Sprint("ns/", n%10)), fmt.Sprint("text ", n))
	}
	if again := r.query(Moment{Version: "300"}, "SELECT key, size, ends FROM objects ORDER BY key"); again != begin {
		t.Errorf("as of the conversion there was\n%s, and now\n%s", begin, again)
	}
	if got, want := r.query(Moment{Version: "320"}, "SELECT count(*), min(ends), max(ends) FROM objects"), "[[10  10  19]]"; got != want {
		t.Errorf("as of now there is %s, want %s", got, want)
	}
	r.reopen(keepAll)
	must(t, r.db.Close())
}

// beforeConversion opens a directory of format 7 in which nothing but the values of columns is
// left to convert.
func beforeConversion(t *testing.T, dir string) *logConverter {
	t.Helper()
	conn, err := sqlite3.Open(filepath.Join(dir, fileName))
	must(t, err)
	must(t, migrate(conn, nil, &progress{}))
	keys, err := readKeys(conn, nil)
	must(t, err)
	db := &DB{keys: keys, opts: Options{Logger: slog.New(slog.DiscardHandler)}}
	must(t, db.moveStates(conn, &progress{db: db}))
	return &logConverter{db: db, reader: reader{conn: conn, stmts: map[string]*sqlite3.Stmt{}}, id: 1, owner: "objects"}
}

// A conversion that was killed is continued. Until then the past is not shown, nothing is
// found to be wrong, and the content is there.
func TestConversionIsContinued(t *testing.T) {
	defer func(n int64) { convertedAtOnce = n }(convertedAtOnce)
	convertedAtOnce = 1 // a life
	dir := oldDirectory(t, 7)
	want, err := os.ReadFile("testdata/format7.txt")
	must(t, err)
	steps := 0
	for more := true; more; steps++ {
		c := beforeConversion(t, dir)
		conn := c.conn
		more, err = c.some()
		must(t, err)
		must(t, closeAll(conn))
		checkSound(t, dir, nil)
		if _, err := Query(t.Context(), dir, "SELECT count(*) FROM objects_history", Limits{}); more != errors.Is(err, changelog.ErrAhead) {
			t.Fatalf("after %d steps it says %v", steps, err)
		}
		if steps == 5 {
			break
		}
	}
	if steps != 5 {
		t.Fatalf("it took %d steps", steps)
	}
	must(t, open(t, dir, Options{History: keepAll}).Close())
	checkSound(t, dir, nil)
	if got := pastIn(t, dir); got != string(want) {
		t.Errorf("the past is\n%s\nwant\n%s", got, want)
	}
}

// What was damaged before the conversion is damaged after it.
func TestConversionOfADamagedState(t *testing.T) {
	for _, damage := range []string{
		"UPDATE tarn_columns_1 SET value='x' WHERE col=3 AND seq=(SELECT seq FROM tarn_columns_1 WHERE col=3 ORDER BY seq DESC LIMIT 1 OFFSET 9)",
		"UPDATE tarn_states_1 SET body=randomblob(20) WHERE seq=(SELECT seq FROM tarn_states_1 WHERE body IS NOT NULL ORDER BY seq DESC LIMIT 1 OFFSET 9)",
		"UPDATE tarn_bases_1 SET body=randomblob(20) WHERE id=(SELECT max(base) FROM tarn_states_1)",
		"DELETE FROM tarn_bases_1 WHERE id=(SELECT max(base) FROM tarn_states_1)",
	} {
		dir := oldDirectory(t, 7)
		sql(damage)(t, nil, filepath.Join(dir, fileName))
		must(t, open(t, dir, Options{History: keepAll}).Close())
		report, err := Check(t.Context(), dir, nil)
		if err != nil || report.OK() {
			t.Errorf("%s: nothing is found (%v)", damage, err)
		}
	}
}

// A step of the conversion that fails is not committed in part.
func TestConversionThatFails(t *testing.T) {
	dir := oldDirectory(t, 7)
	c := beforeConversion(t, dir)
	conn := c.conn
	left := func() int64 {
		n, err := number(conn, "SELECT count(*) FROM tarn_columns_1")
		must(t, err)
		return n
	}
	before := left()
	must(t, conn.Exec("CREATE TRIGGER refuse BEFORE INSERT ON tarn_logs BEGIN SELECT raise(ABORT, 'no'); END"))
	if err := c.convert(&progress{db: c.db}); err == nil {
		t.Error("it did not fail")
	}
	if n := left(); n != before || n == 0 {
		t.Errorf("%d of %d values are left to convert", n, before)
	}
	must(t, conn.Exec("DROP TRIGGER refuse"))
	must(t, closeAll(conn))
	must(t, open(t, dir, Options{History: keepAll}).Close())
	checkSound(t, dir, nil)
}
