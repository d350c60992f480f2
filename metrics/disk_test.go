package metrics_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/metrics"
	"github.com/tarnproject/tarn/sqlite"
)

// texts are kept as they are.
type texts struct{}

func (texts) Append(buf []byte, text string) ([]byte, error) { return append(buf, text...), nil }
func (texts) Decode(raw []byte) (string, error)              { return string(raw), nil }
func (texts) Schema() string                                 { return "texts" }

// onDisk is a copy that is kept on disk.
type onDisk struct {
	fake
	disk *tarn.SinkAdapter[string]
}

func (o onDisk) Health() tarn.Health {
	h := o.fake.Health()
	disk := o.disk.Health()
	h.Disk = &disk
	return h
}

// The metrics show what happens to a directory.
func TestDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { badDisk(t, func(before, after map[string]float64) {}) })
}

func badDisk(t *testing.T, compare func(before, after map[string]float64)) {
	dir := filepath.Join(t.TempDir(), "replica")
	db, err := sqlite.Open(dir, sqlite.Options{LogLimit: 100 << 10, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sink, err := sqlite.NewSink(db, sqlite.Collection{Name: "texts"}, texts{})
	if err != nil {
		t.Fatal(err)
	}
	backed := tarn.AdaptSink(adapter.Key{}, tarn.ReadStore[string](memory.New[string]()), tarn.Sink[string](sink), tarn.Options[string]{Logger: slog.New(slog.DiscardHandler)})
	defer backed.Close()
	c := metrics.NewCollector(metrics.Options{})
	for _, err := range []error{c.Add("texts", onDisk{disk: backed}), c.AddDisk("here", metrics.Disk(db.Stats))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	first := gather(t, c)
	// A tool that reads for long.
	conn, err := sqlite3.Open(filepath.Join(dir, "replica.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec("BEGIN; SELECT count(*) FROM tarn_collections"); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		text := make([]byte, 10_000)
		for at := range text {
			text[at] = byte((at*at + i) % 251)
		}
		if err := backed.Apply([]tarn.Change[string]{{Type: tarn.Update, Key: "a", Object: string(text)}}, tarn.At("1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
	}
	full := gather(t, c)
	compare(first, full)
	if full["tarn_disk_failing{replica=texts}"] != 1 || full["tarn_disk_pending{replica=texts}"] != 1 || full["tarn_disk_failures_total{replica=texts}"] == 0 ||
		full["tarn_disk_lag_seconds{replica=texts}"] < 1 || full["tarn_disk_log_bytes{directory=here}"] < 100<<10 || full["tarn_disk_failed_transactions_total{directory=here}"] == 0 {
		t.Errorf("beside a reader that stays: %v", full)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	well := gather(t, c)
	compare(full, well)
	if well["tarn_disk_failing{replica=texts}"] != 0 || well["tarn_disk_pending{replica=texts}"] != 0 || well["tarn_disk_log_bytes{directory=here}"] != 0 || well["tarn_disk_bytes{directory=here}"] == 0 {
		t.Errorf("afterwards: %v", well)
	}
	c.Remove("here")
	if _, there := gather(t, c)["tarn_disk_bytes{directory=here}"]; there {
		t.Error("a directory that was removed is still shown")
	}
}
