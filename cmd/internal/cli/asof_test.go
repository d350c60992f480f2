package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestSQLAsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t)
		const pods = "SELECT name, phase FROM pods ORDER BY name"
		state := func(t time.Time) string { return "This is the state as of " + t.Local().Format(momentShown) + ".\n" }
		gap := "pods: states between 00:03:00 and 00:05:0x may be missing: read anew\n"
		for _, test := range []struct {
			args []string
			out  string
			err  []string
		}{
			{[]string{"sql", pods, "-o", "csv", "--as-of", at(r.began)}, "name,phase\nweb-1,Running\n", []string{state(r.began)}},
			{[]string{"sql", pods, "-o", "csv", "--as-of", r.failed.Local().Format("2006-01-02 15:04:05")}, "name,phase\nweb-1,Failed\nweb-2,Pending\n", []string{state(r.failed.Truncate(time.Second))}},
			{[]string{"sql", pods, "-o", "csv", "--as-of", at(r.gone)}, "name,phase\nweb-2,Pending\n", []string{state(r.gone)}},
			{[]string{"sql", pods, "-o", "csv", "--as-of", at(r.gap)}, "name,phase\nweb-2,Pending\n", []string{state(r.gap), gap}},
			{[]string{"sql", pods, "-o", "csv", "--as-of", at(r.again)}, "name,phase\nweb-1,Pending\nweb-2,Running\n", []string{state(r.again)}},
			{[]string{"sql", "SELECT p.name, n.name AS node FROM pods p JOIN nodes n ON n.name = p.node", "-o", "csv", "--as-of", at(r.began)}, "name,node\nweb-1,node-1\n",
				[]string{"This is the state as heard at ", "nodes and pods are shown as the mirror knew them then"}},
			{[]string{"sql", "SELECT name, operation, phase FROM pods_history ORDER BY seq", "-o", "csv"},
				"name,operation,phase\nweb-1,added,Running\nweb-1,modified,Failed\nweb-2,added,Pending\nweb-1,deleted,Failed\nweb-1,added,Pending\nweb-2,modified,Running\n", []string{gap}},
		} {
			got := r.ask(test.args...)
			if got.code != 0 || got.out != test.out {
				t.Errorf("%s says\n%s", strings.Join(test.args, " "), got)
			}
			for _, want := range test.err {
				if !strings.Contains(steady(got.err), want) {
					t.Errorf("%s: %q is not in %q", strings.Join(test.args, " "), want, got.err)
				}
			}
		}
	})
}

// With -o json an answer about the past is an object, which has the gaps too.
func TestSQLAsOfInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t)
		for _, test := range []struct {
			args []string
			want string
		}{
			{[]string{"SELECT name FROM pods", "--as-of", at(r.gap)}, "asHeardAt=" + r.gap.UTC().Format("2006-01-02T15:04:05.000Z") + " gaps=[pods read anew] rows=1"},
			{[]string{"SELECT name FROM pods", "--as-of-version", "1008"}, "asOfVersion=1008 gaps=[] rows=2"},
			{[]string{"SELECT name FROM pods_history"}, "gaps=[pods read anew] rows=6"},
		} {
			got := r.ask(append([]string{"sql", "-o", "json"}, test.args...)...)
			var answer struct {
				AsHeardAt, AsOfVersion string
				Gaps                   []struct{ Table, Cause string }
				Rows                   []any
			}
			if err := json.Unmarshal([]byte(got.out), &answer); err != nil {
				t.Errorf("%q: %v\n%s", test.args, err, got)
			}
			said := ""
			if answer.AsHeardAt != "" {
				said += "asHeardAt=" + answer.AsHeardAt + " "
			}
			if answer.AsOfVersion != "" {
				said += "asOfVersion=" + answer.AsOfVersion + " "
			}
			said += "gaps=["
			for _, g := range answer.Gaps {
				said += g.Table + " " + g.Cause
			}
			if said += fmt.Sprint("] rows=", len(answer.Rows)); said != test.want {
				t.Errorf("%q says %s, want %s", test.args, said, test.want)
			}
		}
		if got := r.ask("sql", "-o", "json", "SELECT name FROM nodes"); got.out != "[\n{\"name\": \"node-1\"}\n]\n" {
			t.Errorf("an answer about the present is\n%s", got)
		}
	})
}

// If a history cannot answer, the command prints one line that says what to do.
func TestPastThatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t)
		without := newRig(t, pod("web-1", corev1.PodRunning)).keep("pods")
		const pods = "SELECT name FROM pods"
		for _, test := range []struct {
			args  []string
			code  int
			words []string
		}{
			{[]string{"sql", pods, "--as-of", "20h", "--from", r.dir}, 1, []string{"pods: ", "its history begins at 2000-01-01T00:00:", "ask for a later moment"}},
			{[]string{"sql", pods, "--as-of-version", "1", "--from", r.dir}, 1, []string{"pods: ", "begins at a later version", "ask for a later moment"}},
			{[]string{"sql", pods, "--as-of-version", "100000", "--from", r.dir}, 1, []string{"has not come that far", "it is at version 1011", "or an older one"}},
			{[]string{"sql", pods, "--as-of-version", "abc", "--from", r.dir}, 1, []string{"only where they are numbers", "ask for a time"}},
			{[]string{"sql", "SELECT name FROM api_resources", "--as-of", "1m", "--from", r.dir}, 1, []string{"api_resources: no history is kept", "without --as-of"}},
			{[]string{"sql", "SELECT name FROM podz_history", "--from", r.dir}, 1, []string{"there is no table podz_history"}},
			{[]string{"sql", pods, "--as-of", "1m", "--from", without}, 1, []string{"pods: no history is kept", `"tarn mirror --to DIR --history 24h"`}},
			{[]string{"sql", "SELECT name FROM pods_history", "--from", without}, 1, []string{"pods: no history is kept", `"tarn mirror --to DIR --history 24h"`}},
			{[]string{"history", "pod/web-1", "--from", without}, 1, []string{"pods: no history is kept", `"tarn mirror --to DIR --history 24h"`}},
			{[]string{"replay", "--since", "20h", "--from", r.dir}, 1, []string{"its history begins at 2000-01-01T00:00:", "ask for a later moment"}},
			{[]string{"replay", "--since", "1m", "--from", without}, 1, []string{"no history is kept", `"tarn mirror --to DIR --history 24h"`}},
			{[]string{"sql", pods, "--as-of", "1m"}, 2, []string{"name it with --from"}},
			{[]string{"sql", pods, "--as-of-version", "7"}, 2, []string{"name it with --from"}},
			{[]string{"sql", pods, "--as-of", "1m", "--from", "http://127.0.0.1:8276"}, 2, []string{"a page shows the present", "name the directory"}},
			{[]string{"sql", pods, "--as-of", "1m", "--as-of-version", "7", "--from", r.dir}, 2, []string{"leave one out"}},
			{[]string{"sql", pods, "--as-of", "yesterday", "--from", r.dir}, 2, []string{`"yesterday" is not a time`, "10m or 7d", "2026-11-16T02:00:00Z"}},
			{[]string{"sql", pods, "--as-of", "2038-01-01 00:00", "--from", r.dir}, 2, []string{"is in the future"}},
			{[]string{"sql", pods, "--as-of", "-1m", "--from", r.dir}, 2, []string{"is in the future"}},
		} {
			if err := r.run(test.args...).check(test.code, test.words...); err != nil {
				t.Errorf("%s: %v", strings.Join(test.args, " "), err)
			}
		}
	})
}

// A version of before the server went back is not there, or has a second meaning.
func TestVersionOfAnotherEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		backup := r.server.Snapshot()
		dir := filepath.Join(t.TempDir(), "replica")
		var versions []string
		step := func() {
			time.Sleep(10 * time.Second)
			versions = append(versions, r.server.Version())
		}
		r.during(func(*lockedBuffer) {
			step()
			r.put(pod("web-2", corev1.PodRunning))
			step()
			r.put(pod("web-3", corev1.PodRunning))
			step()
			if err := r.server.Restore(backup); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Minute)
			r.put(pod("new", corev1.PodRunning))
			step()
		}, "mirror", "pods", "--to", dir, "--history", "24h")
		const sql = "SELECT name FROM pods ORDER BY name"
		got := r.run("sql", sql, "-o", "csv", "--from", dir, "--as-of-version", versions[1])
		note := "pods: the server went back from version " + versions[2] + " to " + versions[0] + " at 00:0"
		if got.out != "name\nnew\nweb-1\n" || !strings.Contains(got.err, note) || !strings.Contains(got.err, "ask for a time with --as-of to see the state before") {
			t.Errorf("it says\n%s", got)
		}
		if err := r.run("sql", sql, "--from", dir, "--as-of-version", versions[2]).check(1, "has not come that far", "it is at version "+versions[1], "--as-of"); err != nil {
			t.Error(err)
		}
		if got := r.run("sql", sql, "-o", "csv", "--from", dir, "--as-of", "2000-01-01T00:00:28Z"); got.out != "name\nweb-1\nweb-2\nweb-3\n" {
			t.Errorf("by time it says\n%s", got)
		}
	})
}

// A mirror that has ended knows nothing of later changes.
func TestMomentAfterTheLastContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t)
		time.Sleep(time.Hour)
		got := r.ask("sql", "SELECT name FROM pods ORDER BY name", "-o", "csv", "--as-of", "10m")
		if got.out != "name\nweb-1\nweb-2\n" || !strings.Contains(got.err, "pods: the last contact with the server was at 00:0") || !strings.Contains(got.err, "; what happened after it is not known.\n") {
			t.Errorf("it says\n%s", got)
		}
	})
}

// get and query show objects of the past, without a server.
func TestGetAndQueryAsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t)
		time.Sleep(time.Hour)
		var b strings.Builder
		for _, args := range [][]string{
			{"get", "pods", "--as-of", at(r.began)},
			{"get", "pods,nodes", "-o", "wide", "--as-of", at(r.failed)},
			{"get", "pods", "--as-of", at(r.gap)},
			{"get", "pods", "web-1", "--as-of", at(r.gone)},
			{"get", "pods/web-1", "-o", "jsonpath={.status.phase}", "--as-of", at(r.failed)},
			{"get", "pods", "-o", "name", "--as-of-version", "1008"},
			{"get", "pods", "--field-selector", "status.phase=Failed", "-o", "name", "--as-of", at(r.failed)},
			{"get", "pods", "--as-of", at(r.again.Add(10 * time.Minute))},
			{"query", "pods", "--where", "status.phase!=Running", "--as-of", at(r.failed)},
			{"query", "pods", "--count", "--as-of", at(r.gap)},
			{"query", "pods", "--count", "--as-of-version", "1006"},
			{"get", "pods", "--as-of", "20h"},
			{"query", "pods", "--as-of", "20h"},
			{"query", "pods", "--as-of-version", "100000"},
			{"get", "pods", "-w", "--as-of", "10m"},
		} {
			b.WriteString("$ tarn " + strings.Join(args, " ") + "\n")
			b.WriteString(r.ask(args...).String() + "\n")
		}
		golden(t, "asof", steady(strings.ReplaceAll(b.String(), r.dir, "replica")))
	})
}

// An encrypted directory has a history too, which get and query read with its key.
func TestAsOfEncrypted(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, strings.Repeat("0123456789abcdef", 4)+"\n")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		dir := filepath.Join(t.TempDir(), "replica")
		var before time.Time
		r.during(func(*lockedBuffer) {
			time.Sleep(10 * time.Second)
			before = time.Now()
			time.Sleep(time.Second)
			r.put(pod("web-1", corev1.PodFailed))
			time.Sleep(10 * time.Second)
		}, "mirror", "pods", "--to", dir, "--key-file", key, "--history", "24h")
		for _, args := range [][]string{{"get", "pods/web-1", "-o", "jsonpath={.status.phase}"}, {"query", "pods", "-o", "jsonpath={.items[*].status.phase}"}} {
			if got := r.run(append(args, "--from", dir, "--key-file", key, "--as-of", at(before))...); got.out != "Running" || got.code != 0 {
				t.Errorf("%q says\n%s", args, got)
			}
		}
	})
}
