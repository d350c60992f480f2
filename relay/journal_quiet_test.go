package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// A watch may begin before a bookmark that is only on disk.
func TestBookmarksInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newJournalRig(t, t.TempDir())
		defer r.Close()
		r.bytes = 1000 // so that the past is on disk only
		var starts []int64
		for range 3 {
			r.update(20)
			starts = append(starts, r.model.version)
			for range 3 {
				time.Sleep(time.Minute)
				r.model.version += 5
				r.take(tarn.Batch[Object]{})
				starts = append(starts, r.model.version-2, r.model.version)
			}
		}
		r.update(20)
		for _, start := range starts {
			w, err := r.Watch(t.Context(), apiserver.WatchQuery{At: apiserver.At{Match: apiserver.NotOlder, Version: start}})
			if err != nil {
				t.Fatalf("from %d: %v", start, err)
			}
			last := start
			for last < r.model.version {
				events, version, err := w.Next()
				if err != nil || len(events) == 0 {
					t.Fatalf("from %d: after %d: %d events, %v", start, last, len(events), err)
				}
				if first := events[0].Version; first <= last {
					t.Errorf("from %d: %d after %d", start, first, last)
				}
				last = version
			}
			w.Close()
		}
	})
}
