package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// A directory that another user created in advance is refused with an error of one
// line, and nothing is written to it.
func TestDirectoriesOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are neither owners nor modes in the way of Unix")
	}
	const nobody = 65534
	asRoot := func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can make files of another user")
		}
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"another user's directory": {func(t *testing.T, dir string) {
			asRoot(t)
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chown(dir, nobody, nobody))
		}, "belongs to the user 65534"},
		"another user's file": {func(t *testing.T, dir string) {
			asRoot(t)
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, fileName), nil, 0o600))
			must(t, os.Chown(filepath.Join(dir, fileName), nobody, nobody))
		}, "belongs to the user 65534"},
		"a link": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir+"-real", 0o700))
			must(t, os.Symlink(dir+"-real", dir))
		}, "symbolic link"},
		"a link to nowhere": {func(t *testing.T, dir string) { must(t, os.Symlink(dir+"-real", dir)) }, "symbolic link"},
		"a link in the place of the file": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(dir, fileName)))
		}, "symbolic link"},
		"a link in the place of the log": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(dir, fileName+"-wal")))
		}, "symbolic link"},
		"a link in the place of the lock": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(dir, lockName)))
		}, "symbolic link"},
		"a directory in the place of the file": {func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, fileName), 0o700))
		}, "is not a file"},
		"open to a group": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o770))
		}, "open to others (mode 0770)"},
		"open to all": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o777))
		}, "open to others (mode 0777)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			c.make(t, dir)
			for _, path := range []string{dir, dir + "/"} {
				db, err := Open(path, Options{Logger: quiet})
				if err == nil {
					db.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("Open of %s says %v, want %q", path, err, c.want)
				}
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 1 {
				t.Errorf("it was written to: %v", entries)
			}
		})
	}
}

// Files of ours that are open to others are closed to them.
func TestFilesAreClosedToOthers(t *testing.T) {
	if !modesMatter {
		t.Skip("there are no modes here")
	}
	dir := directory(t)
	db := open(t, dir, Options{})
	must(t, openStore(t, db).Apply([]tarn.Change[thing]{put("a", 1)}, tarn.At("1")))
	must(t, db.Close())
	for _, name := range filesOfDirectory(dir) {
		if _, err := os.Stat(name); err == nil {
			must(t, os.Chmod(name, 0o666))
		}
	}
	db = open(t, dir, Options{})
	must(t, openStore(t, db).Apply([]tarn.Change[thing]{put("a", 2)}, tarn.At("2")))
	onlyOurs(t, dir)
}

// Root may read a directory of another user, who can still write it afterwards.
func TestRootReadsADirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it is about root")
	}
	const nobody = 65534
	dir := directory(t)
	db := open(t, dir, Options{})
	must(t, openStore(t, db).Apply([]tarn.Change[thing]{put("a", 1)}, tarn.At("1")))
	must(t, db.Close())
	must(t, os.Remove(filepath.Join(dir, lockName)))
	must(t, os.Chown(filepath.Join(dir, fileName), nobody, nobody))
	must(t, os.Chown(dir, nobody, nobody))
	if got := ask1(t, dir, "SELECT count(*) FROM tarn_collections"); got != "1" {
		t.Errorf("root is told %s", got)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		if user, _, _ := ownerOf(info); user != nobody {
			t.Errorf("%s belongs to %d", e.Name(), user)
		}
	}
}

// The changelog says which formats there are. A module that is tested by itself has none.
func TestFormatIsInTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip(err)
	}
	must(t, err)
	for _, want := range []string{fmt.Sprintf("The current format is %d.", format), fmt.Sprintf("\n| %d |", format)} {
		if !strings.Contains(string(text), want) {
			t.Errorf("CHANGELOG.md lacks %q", want)
		}
	}
}
