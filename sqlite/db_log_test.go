package sqlite

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// lingering is a tool that reads a file and does not end.
func lingering(t testing.TB, db *DB) (leave func()) {
	t.Helper()
	conn, err := sqlite3.OpenFlags(fileURI(db.path()), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	must(t, err)
	must(t, conn.Exec("BEGIN; SELECT count(*) FROM tarn_collections"))
	return func() { must(t, conn.Close()) }
}

// logText is what was logged so far. Virtual time orders who writes and who reads; the lock
// shows that to the race detector.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A reader that keeps the file open does not make the log grow without bound. At the
// limit writing stops, Health reports that, and memory holds the latest state of each
// key. When the reader closes the file, the disk catches up.
func TestLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told logText
		dir, logger := directory(t), slog.New(slog.NewTextHandler(&told, nil))
		const limit = 1 << 20
		db := open(t, dir, Options{LogLimit: limit, Logger: logger})
		s := openStore(t, db)
		b := follow(t, s)
		must(t, b.Apply([]tarn.Change[thing]{put("first", 1)}, tarn.At("1")))
		must(t, db.Flush())
		leave := lingering(t, db)
		most, want := int64(0), map[tarn.Key]int{"first": 1}
		for i := range 300 {
			c := put("t"+strconv.Itoa(i%50), i)
			c.Object.Pad = strings.Repeat(strconv.Itoa(i*7919), 2000)
			must(t, b.Apply([]tarn.Change[thing]{c}, tarn.At(tarn.Version(strconv.Itoa(i+2)))))
			want[c.Key] = i
			time.Sleep(2 * time.Second)
			synctest.Wait()
			most = max(most, db.Stats().LogBytes)
		}
		if most < limit || most > 2*limit {
			t.Errorf("the log had up to %d KiB, the limit is %d", most>>10, limit>>10)
		}
		h := b.Disk()
		if !errors.Is(h.Err, ErrLogFull) || h.Pending == 0 || h.Pending > 51 || h.Lag < time.Minute || h.Failures == 0 {
			t.Errorf("Health says %v, %d failures", h, h.Failures)
		}
		if n := strings.Count(told.String(), "a reader keeps the log"); n != 1 {
			t.Errorf("it was told %d times:\n%s", n, told.String())
		}
		expect(t, b, "301", want)
		leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, s, "301", want)
		if h := b.Disk(); h.Err != nil || h.Pending != 0 {
			t.Errorf("when the reader is gone Health says %v", h)
		}
		if !strings.Contains(told.String(), "the reader is gone") {
			t.Errorf("that the disk is written again was not told:\n%s", told.String())
		}
		time.Sleep(2 * emptyAfter)
		synctest.Wait()
		if stats := db.Stats(); stats.LogBytes != 0 || stats.Bytes == 0 || stats.Failures == 0 {
			t.Errorf("in the end there are %+v", stats)
		}
		must(t, db.Close())
	})
}

// A store on disk alone says that the log is full, and can be written when the reader
// is gone.
func TestLogOfAStoreOnDiskOnly(t *testing.T) {
	db := open(t, directory(t), Options{LogLimit: 64 << 10})
	s := openStore(t, db)
	must(t, s.Apply([]tarn.Change[thing]{put("a", 1)}, tarn.At("1")))
	leave := lingering(t, db)
	var err error
	for i := range 100 {
		c := put("a", i)
		c.Object.Pad = strings.Repeat(strconv.Itoa(i*7919), 1000)
		if err = s.Apply([]tarn.Change[thing]{c}, tarn.At("2")); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrLogFull) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Apply says %v", err)
	}
	leave()
	must(t, s.Apply([]tarn.Change[thing]{put("a", 200)}, tarn.At("3")))
	expect(t, s, "3", map[tarn.Key]int{"a": 200})
}
