package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/fleet"
	"github.com/tarnproject/tarn/sqlite"
)

// A cluster that comes back under its name with other objects and lower versions, as a
// rebuilt one does, has these objects and no others, on disk too. The same holds for a
// cluster that comes and goes many times.
func TestFleetComesBack(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		f.rigs["west"].put("shop", "web")
		for i := range 50 {
			f.rigs["east"].put("shop", fmt.Sprint("old-", i))
		}
		f.rigs["new"].put("shop", "web")
		dir := filepath.Join(t.TempDir(), "replica")
		db, err := sqlite.Open(dir, sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		m, stop := f.start(Options{Disk: &Disk{DB: db}}, "east", "west")
		if err := m.WaitSynced(f.Context()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			for _, of := range []string{"new", "east", "new"} {
				if err := m.RemoveCluster("east"); err != nil {
					t.Fatal(err)
				}
				if err := m.AddCluster(fleet.Cluster{Name: "east", Config: f.rigs[of].config()}); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		wantKeys(t, m, "east/shop/web west/shop/web")
		if err := m.DB().Flush(); err != nil {
			t.Fatal(err)
		}
		result, err := m.SQL(f.Context(), "SELECT a.cluster, b.cluster, a.name FROM configmaps a JOIN configmaps b ON b.namespace = a.namespace AND b.name = a.name AND b.cluster > a.cluster", sqlite.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(result.Rows); got != "[[east west web]]" {
			t.Errorf("SQL says %s", got)
		}
		stop()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}, "east", "west", "new")
}

// A cluster whose server takes requests and answers nothing, or whose watch brings nothing any
// more, is stale within the time that docs/fleet.md says, and recovers.
func TestFleetSilentCluster(t *testing.T) {
	fleetInBubble(t, func(f *fleetRig) {
		f.rigs["east"].put("shop", "web")
		f.rigs["west"].put("shop", "web")
		m, stop := f.start(Options{}, "east", "west")
		defer stop()
		if err := m.WaitSynced(f.Context()); err != nil {
			t.Fatal(err)
		}
		f.rigs["west"].interfere(func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})
		f.rigs["west"].server.Close() // its watch ends, and no request is answered
		time.Sleep(61 * time.Second)
		table, _ := m.Table("configmaps")
		for _, h := range table.Replica().Health().Sections {
			if fresh := h.Fresh(time.Minute); fresh != (h.Section == "east") {
				t.Errorf("fresh %v: %s", fresh, h)
			}
		}
	}, "east", "west")
}
