package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn/sqlite"
)

// Inspect recognizes every state of a directory, and changes nothing.
func TestInspect(t *testing.T) {
	inspect := func(dir string) sqlite.Inspection {
		t.Helper()
		before := listing(t, dir)
		found, err := sqlite.Inspect(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if after := listing(t, dir); after != before {
			t.Errorf("the directory was changed from %s to %s", before, after)
		}
		return found
	}
	dir := filepath.Join(t.TempDir(), "replica")
	if found := inspect(dir); found.Exists || found.Refused != nil || found.InUse || found.Reads == 0 {
		t.Errorf("of no directory it says %+v", found)
	}
	db, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if found := inspect(dir); !found.Exists || !found.InUse || found.Mode != 0o700 {
		t.Errorf("of a directory that is open it says %+v", found)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	found := inspect(dir)
	if found.InUse || found.Format != found.Reads || found.Bytes == 0 || found.Unreadable != nil {
		t.Errorf("of a directory that was closed it says %+v", found)
	}
	for version, converts := range map[string]bool{"3": false, "4": true} {
		change(t, dir, "PRAGMA user_version="+version)
		if found := inspect(dir); found.Converts != converts {
			t.Errorf("of format %s it says %+v", version, found)
		}
	}
	change(t, dir, "PRAGMA user_version=99")
	if found := inspect(dir); found.Format != 99 || found.Converts {
		t.Errorf("of another format it says %+v", found)
	}
	change(t, dir, "PRAGMA application_id=7")
	if found := inspect(dir); found.Unreadable == nil || !strings.Contains(found.Unreadable.Error(), "something else") {
		t.Errorf("of another program's file it says %+v", found)
	}
	if err := os.WriteFile(filepath.Join(dir, "replica.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := inspect(dir); found.Unreadable == nil {
		t.Errorf("of what is no database it says %+v", found)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if found := inspect(dir); found.Refused == nil || !strings.Contains(found.Refused.Error(), "open to others") {
		t.Errorf("of a directory that others can read it says %+v", found)
	}
}

func change(t *testing.T, dir, sql string) {
	t.Helper()
	conn, err := sqlite3.Open(filepath.Join(dir, "replica.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

// listing is the files of a directory with their sizes.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, _ := os.ReadDir(dir) // it need not be there
	var all strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(info.Name() + " " + info.Mode().String() + "; ")
	}
	return all.String()
}
