package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ncruces/go-sqlite3"
	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/sqlite"
)

// tamper changes a replica as any tool can.
func tamper(t *testing.T, dir, sql string) {
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

// A directory is checked, damaged, found to be, repaired, and taken over by the mirror,
// which gets what was lost from the server.
func TestCheckAndRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodPending), pod("web-3", corev1.PodRunning), node("node-1"))
		dir := r.keep("pods", "nodes")
		got := r.run("check", dir)
		for _, want := range []string{"pods            3         0         0", "complete", "nothing is wrong with 3 collections and 6 objects"} {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Fatalf("of a sound directory it says\n%s, and not %q", got, want)
			}
		}
		if got := r.run("repair", dir); got.code != 0 || got.out != "nothing is wrong; nothing was changed\n" {
			t.Errorf("a sound directory is repaired:\n%s", got)
		}
		tamper(t, dir, "UPDATE tarn_rows_2 SET restarts = 99 WHERE name = 'web-2'")
		got = r.run("check", dir)
		if got.code != exitDamaged || !strings.Contains(got.out, "pods: default/web-2: its row for SQL\n") || !strings.Contains(got.err, "tarn repair ") {
			t.Errorf("of a damaged one it says\n%s", got)
		}
		var report sqlite.Report
		got = r.run("check", dir, "-o", "json")
		if err := json.Unmarshal([]byte(got.out), &report); err != nil || got.code != exitDamaged || len(report.Findings) != 1 || report.Findings[0].Key != "default/web-2" {
			t.Errorf("as JSON it says\n%s, %v", got, err)
		}
		got = r.run("repair", dir)
		if got.code != 0 || !strings.Contains(got.out, "saved: 2 objects of pods\n") || !strings.Contains(got.out, "saved: 1 object of nodes\n") {
			t.Errorf("repair says\n%s", got)
		}
		if got := r.run("get", "pods", "--from", dir, "-o", "name"); got.out != "pod/web-1\npod/web-3\n" {
			t.Errorf("then there are\n%s", got)
		}
		r.keepIn(dir, "pods", "nodes")
		if got := r.run("sql", "SELECT name, restarts FROM pods ORDER BY 1", "--from", dir, "-o", "csv"); got.out != "name,restarts\nweb-1,0\nweb-2,0\nweb-3,0\n" {
			t.Errorf("after the mirror was started there are\n%s", got)
		}
		if got := r.run("check", dir); got.code != 0 {
			t.Errorf("and it is found\n%s", got)
		}
	})
}

// A directory that cannot be checked gives an error of one line, and is not damaged.
func TestCheckOfWhatCannotBe(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	used, err := sqlite.Open(at("used"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	for name, key := range map[string][]byte{"newer": nil, "sealed": []byte(strings.Repeat("k", 32))} {
		db, err := sqlite.Open(at(name), sqlite.Options{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tamper(t, at("newer"), "PRAGMA user_version=99; UPDATE tarn_format SET value=99 WHERE name='format'")
	write(t, at("key"), strings.Repeat("x", 32))
	if err := os.Mkdir(at("empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		code  int
		words []string
	}{
		{[]string{"check", at("empty")}, exitUnknown, []string{"tarn: " + at("empty") + " holds no replica"}},
		{[]string{"check", at("newer")}, exitUnknown, []string{"newer Tarn", "format 99"}},
		{[]string{"check", at("sealed")}, exitUnknown, []string{"encrypted", "--key-file"}},
		{[]string{"check", at("sealed"), "--key-file", at("key")}, exitUnknown, []string{"another key"}},
		{[]string{"check", at("sealed"), "--key-file", at("none")}, exitUnknown, []string{"no such file"}},
		{[]string{"check"}, exitUsage, []string{"one replica directory"}},
		{[]string{"check", at("used"), "-o", "xml"}, exitUsage, []string{"json"}},
		{[]string{"repair", at("used")}, exitFailed, []string{"in use", "end the mirror first"}},
		{[]string{"repair", at("newer")}, exitFailed, []string{"newer Tarn"}},
		{[]string{"repair", at("empty")}, exitFailed, []string{"tarn: " + at("empty") + " holds no replica"}},
		{[]string{"repair", at("used"), at("empty")}, exitUsage, []string{"one replica directory"}},
	} {
		if err := newRig(t).run(c.args...).check(c.code, c.words...); err != nil {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	if got := newRig(t).run("check", at("used")); got.code != 0 {
		t.Errorf("beside a mirror it says\n%s", got)
	}
}
