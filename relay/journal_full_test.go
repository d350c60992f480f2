package relay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A content that cannot be written leaves nothing on the disk, which may be full: what is left
// of one try after the other would keep it so.
func TestContentThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newJournalRig(t, dir)
		defer r.Close()
		for place := 2; place < 100; place++ { // the last step fails, whatever the next place is
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("%s%020d", contentPrefix, place), "full"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		_ = r.journal.logs[0].file.Close() // the next write fails, and the journal begins again
		for range 4 {
			time.Sleep(2 * journalRetry)
			r.update(1)
			if _, err := r.disk(); err == nil {
				t.Fatal("the disk can be written")
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
			t.Errorf("%q", left)
		}
	})
}
