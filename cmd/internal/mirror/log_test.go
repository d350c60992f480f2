package mirror

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/sqlite"
)

// The history of a table has every state, and a table without one says so.
func TestTableLog(t *testing.T) {
	inBubble(t, func(r *rig) {
		db, err := sqlite.Open(filepath.Join(r.TempDir(), "replica"), sqlite.Options{Logger: slog.New(slog.DiscardHandler), History: sqlite.History{Age: time.Hour}})
		if err != nil {
			r.Fatal(err)
		}
		defer db.Close()
		r.put("default", "one")
		m, stop := r.start(Options{Disk: &Disk{DB: db}}, "configmaps", "secrets")
		defer stop()
		r.synced(m)
		time.Sleep(5 * time.Second)
		r.put("default", "one")
		time.Sleep(time.Second)

		log, err := m.Log(r.table(m, "configmaps"))
		if err != nil {
			r.Fatal(err)
		}
		if err := log.Settle(); err != nil {
			r.Fatal(err)
		}
		var versions []string
		for e, err := range log.Of(r.Context(), "default/one") {
			if err != nil {
				r.Fatal(err)
			}
			object, err := log.Decode(e.State)
			if err != nil {
				r.Fatal(err)
			}
			versions = append(versions, object.GetResourceVersion())
			if e.Version != "" && string(e.Version) != object.GetResourceVersion() {
				r.Errorf("version %s has the object of %s", e.Version, object.GetResourceVersion())
			}
		}
		if len(versions) != 2 || versions[0] == versions[1] {
			r.Errorf("the versions are %v", versions)
		}
		if gaps, err := log.Gaps(r.Context()); err != nil || len(gaps) != 0 {
			r.Errorf("the gaps are %v, %v", gaps, err)
		}
		if _, err := log.Decode(changelog.State{Key: "default/one", Object: []byte("{")}); err == nil {
			r.Error("half an object was decoded")
		}
		if _, err := m.Log(r.table(m, "secrets")); !errors.Is(err, changelog.ErrNoLog) || m.KeepsHistory(r.table(m, "secrets")) {
			r.Errorf("of Secrets, which are not on disk: %v", err)
		}
	})
	inBubble(t, func(r *rig) {
		m, stop := r.start(Options{}, "configmaps")
		defer stop()
		if _, err := m.Log(r.table(m, "configmaps")); !errors.Is(err, changelog.ErrNoLog) {
			r.Errorf("in memory: %v", err)
		}
	})
}
