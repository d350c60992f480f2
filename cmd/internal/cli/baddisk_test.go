package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn/sqlite"
)

// For each directory that cannot be used, commands that write it and commands that read it
// print one line. They leave the directory unchanged.
func TestDirectoriesThatCannotBeUsed(t *testing.T) {
	t.Setenv("TARN_KEY", strings.Repeat("0f", 32)) // for those that are given it
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	var inUse *sqlite.DB
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		for _, name := range []string{"good", "newer", "used", "readonly"} {
			r.keepIn(at(name), "pods")
		}
		r.env["TARN_KEY"] = "set"
		r.keepIn(at("sealed"), "pods")
	})
	change := func(name, sql string) {
		t.Helper()
		conn, err := sqlite3.Open(filepath.Join(at(name), "replica.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	change("newer", "PRAGMA user_version=99; UPDATE tarn_format SET value=99 WHERE name='format'")
	for name, mode := range map[string]os.FileMode{"empty": 0o700, "foreign": 0o700, "open": 0o755} {
		if err := os.Mkdir(at(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	change("foreign", "CREATE TABLE mine (x)")
	if err := os.Symlink(at("good"), at("link")); err != nil {
		t.Fatal(err)
	}
	write(t, at("file"), "text")
	write(t, at("badkey"), "short")
	inUse, err := sqlite.Open(at("used"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inUse.Close()
	if err := os.Chmod(at("readonly"), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(at("readonly"), 0o700)
	for _, c := range []struct {
		args  string
		words []string
	}{
		{"mirror pods --to used", []string{"in use"}},
		{"mirror pods --to newer", []string{"newer Tarn", "format 99", "another directory"}},
		{"serve pods --to newer --listen 127.0.0.1:0", []string{"newer Tarn"}},
		{"mirror pods --to foreign", []string{"database of something else"}},
		{"mirror pods --to file", []string{"not a directory"}},
		{"mirror pods --to file/below", []string{"cannot be used", "not a directory"}},
		{"mirror pods --to open", []string{"chmod 700"}},
		{"mirror pods --to link", []string{"symbolic link", "name the directory itself"}},
		{"mirror pods --to good --key-file badkey", []string{"32 bytes", "openssl rand"}},
		{"mirror pods --to good --key-file nothing", []string{"no such file"}},
		{"get pods --from nothing", []string{"holds no replica"}},
		{"get pods --from empty", []string{"holds no replica"}},
		{"get pods --from newer", []string{"newer Tarn", "format 99"}},
		{"get pods --from foreign", []string{"database of something else"}},
		{"get pods --from sealed", []string{"encrypted", "--key-file"}},
		{"get pods --from good --key-file key", []string{"not encrypted"}},
		{"query pods --from sealed", []string{"encrypted"}},
		{"watch pods --from newer", []string{"newer Tarn"}},
		{"sql SELECT/1 --from sealed", []string{"encrypted", "no tables"}},
		{"sql SELECT/1 --from newer", []string{"newer Tarn"}},
		{"sql SELECT/1 --from nothing", []string{"holds no replica"}},
		{"sql SELECT/1 --from http://127.0.0.1:1", []string{"page cannot be reached"}},
	} {
		r := newRig(t)
		args := strings.Fields(c.args)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "SELECT/1", "SELECT 1")
			if i > 0 && (args[i-1] == "--to" || args[i-1] == "--from" || args[i-1] == "--key-file") && !isAddress(arg) {
				args[i] = at(arg)
			}
		}
		if c.args == "get pods --from good --key-file key" {
			write(t, at("key"), strings.Repeat("0f", 32))
		}
		if err := r.run(args...).check(exitFailed, c.words...); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	if os.Geteuid() != 0 { // to whom modes mean nothing
		if err := newRig(t).run("mirror", "pods", "--to", at("readonly")).check(exitFailed, "permission denied"); err != nil {
			t.Error(err)
		}
		if got := newRig(t).run("get", "pods", "--from", at("readonly"), "-o", "name"); got.out != "pod/web-1\n" {
			t.Errorf("the one that is read-only says\n%s", got)
		}
		if got := newRig(t).run("sql", "SELECT name FROM pods", "--from", at("readonly"), "-o", "csv"); got.out != "name\nweb-1\n" {
			t.Errorf("the one that is read-only says\n%s", got)
		}
	}
	for _, c := range []struct{ args, word string }{
		{"mirror pods --with-secrets", "--to"},
		{"get pods --from http://127.0.0.1:8276", "sql"},
	} {
		if err := newRig(t).run(strings.Fields(c.args)...).check(exitUsage, c.word); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	// They are unchanged.
	if got := newRig(t).run("get", "pods", "--from", at("good"), "-o", "name"); got.out != "pod/web-1\n" {
		t.Errorf("the good one says\n%s", got)
	}
	inUse.Close()
	if got := newRig(t).run("get", "pods", "--from", at("used"), "-o", "name"); got.out != "pod/web-1\n" {
		t.Errorf("the one that was in use says\n%s", got)
	}
}

// A command that writes the directory of another cluster builds it again, and does not
// compare it with the wrong cluster.
func TestDirectoryOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := func(uid string) *corev1.Namespace {
			n := &corev1.Namespace{}
			n.Name, n.UID = "kube-system", types.UID(uid)
			return n
		}
		one := newRig(t, system("one"), pod("web-1", corev1.PodRunning))
		two := newRig(t, system("two"), pod("other-1", corev1.PodRunning))
		dir := one.keep("pods")
		if got := two.run("verify", "pods", "--from", dir); got.code != exitUnknown || !strings.Contains(got.err, "another source") {
			t.Errorf("verify says\n%s", got)
		}
		two.keepIn(dir, "pods")
		if got := two.run("get", "pods", "--from", dir, "-o", "name"); got.out != "pod/other-1\n" {
			t.Errorf("it then has\n%s", got)
		}
	})
}

// A disk that fails while a mirror runs is reported, and the mirror continues.
func TestMirrorWithoutItsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		dir := filepath.Join(t.TempDir(), "replica")
		got := r.during(func(out *lockedBuffer) {
			time.Sleep(5 * time.Second)
			// A locked file has the same effect as a full disk.
			conn, err := sqlite3.Open(filepath.Join(dir, "replica.db"))
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Exec("BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			r.put(pod("web-2", corev1.PodRunning))
			time.Sleep(time.Minute)
			if err := conn.Exec("ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			conn.Close()
			time.Sleep(time.Minute)
		}, "mirror", "pods", "--to", dir)
		if !strings.Contains(got.out, "in memory only") || !strings.Contains(got.out, "recovered") {
			t.Errorf("it says\n%s", got)
		}
		if got := r.run("get", "pods", "--from", dir, "-o", "name"); got.out != "pod/web-1\npod/web-2\n" {
			t.Errorf("on disk are\n%s", got)
		}
	})
}
