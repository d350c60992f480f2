package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
	"github.com/tarnproject/tarn/sqlite"
)

// keep mirrors into a directory until all is there.
func (r *rig) keep(args ...string) (dir string) {
	r.t.Helper()
	dir = filepath.Join(r.t.TempDir(), "replica")
	r.keepIn(dir, args...)
	return dir
}

func (r *rig) keepIn(dir string, args ...string) {
	r.t.Helper()
	got := r.during(func(*lockedBuffer) { time.Sleep(5 * time.Second) }, append([]string{"mirror", "--to", dir}, args...)...)
	if got.code != 0 || !strings.Contains(got.out, "synced") {
		r.t.Fatalf("the mirror says\n%s", got)
	}
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// What a mirror has written is read without a server.
func TestReadingADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := pod("db-1", corev1.PodPending)
		other.Namespace = "other"
		other.Labels = nil
		r := newRig(t, pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodPending), other, deployment("web"), node("node-1"), secret("s", "topsecret"))
		dir := r.keep("pods", "deployments", "nodes", "secrets", "-A")
		r.intercept = func(*http.Request, http.RoundTripper) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
		var b strings.Builder
		for _, args := range [][]string{
			{"get", "po"},
			{"get", "pods,deployments", "-A", "-o", "wide"},
			{"get", "pods", "-A", "-l", "app=web", "--field-selector", "status.phase!=Running"},
			{"get", "pods/web-1", "deploy/web", "-o", "name"},
			{"get", "pods", "web-3"},
			{"get", "services"},
			{"get", "secrets"},
			{"get", "pods", "-o", "jsonpath={.items[*].status.phase}"},
			{"query", "pods", "-A", "--where", "status.phase=Pending", "--sort-by", "-metadata.name"},
			{"query", "pods", "--count"},
			{"sql", "SELECT namespace, name, status, node, ready_containers FROM pods ORDER BY 1, 2"},
			{"sql", "-o", "json", "SELECT p.name, n.name AS node FROM pods p JOIN nodes n ON n.name = p.node WHERE p.phase = 'Running'"},
			{"sql", "-o", "csv", "SELECT name, kind, table_name, api_group FROM api_resources ORDER BY 1"},
			{"sql", "--max-rows", "1", "SELECT name FROM pods"},
			{"sql", "SELECT * FROM deployments"},
			{"sql", "SELECT * FROM podz"},
			{"sql", "SELEC name FROM pods"},
			{"sql", "DELETE FROM pods"},
			{"sql", "ATTACH 'x' AS y"},
			{"sql", "SELECT 1; SELECT 2"},
			{"sql"},
			{"sql", "-o", "xml", "SELECT 1"},
			{"sql", "SELECT", "1"},
		} {
			b.WriteString("$ tarn " + strings.Join(args, " ") + "\n")
			b.WriteString(r.run(append(args, "--from", dir)...).String() + "\n")
		}
		golden(t, "from", strings.ReplaceAll(b.String(), dir, "replica"))

		ctx, interrupt := context.WithCancel(t.Context())
		interrupt()
		var out, errOut lockedBuffer
		if code := r.app(&out, &errOut).main(ctx, []string{"sql", endless, "--from", dir}); code != exitInterrupted || out.String() != "" {
			t.Errorf("an interrupted one ends with %d: %s%s", code, out.String(), errOut.String())
		}
	})
}

// endless takes processor time, which virtual time knows nothing of.
const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"

func TestEndlessSQL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "replica")
	db, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := alone(t, "sql", endless, "--from", dir, "--timeout", "20ms").check(exitFailed, "stopped after 20ms"); err != nil {
		t.Error(err)
	}
}

// texts are kept as they are.
type texts struct{}

func (texts) Append(buf []byte, word string) ([]byte, error)  { return append(buf, word...), nil }
func (texts) Decode(raw []byte) (string, error)               { return string(raw), nil }
func (texts) Schema() string                                  { return "texts" }
func (texts) Table() sqlite.Table                             { return sqlite.Table{} }
func (texts) Row(word string, raw []byte) (sqlite.Row, error) { return sqlite.Row{}, nil }

// An answer from an incomplete copy says so.
func TestSQLOfWhatIsNotThereYet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "replica")
	db, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := sqlite.NewStore(db, sqlite.Collection{Name: "pods"}, texts{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Fill([]tarn.Change[string]{{Type: tarn.Add, Key: "a", Object: "a"}}, true); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"SELECT count(*) FROM pods", "SELECT count(*) FROM Pods_Labels", "WITH c AS (SELECT key FROM pods AS p) SELECT count(*) FROM c"} {
		if got := alone(t, "sql", sql, "-o", "csv", "--from", dir); got.out != "count(*)\n0\n" || got.err != "pods: the first state is not all on disk yet.\n" {
			t.Errorf("before: %s", got)
		}
	}
	for _, sql := range []string{"SELECT 'pods' AS n", "SELECT 'pods' AS n -- FROM pods", "WITH pods AS (SELECT 'pods' AS n) SELECT n FROM pods"} {
		if got := alone(t, "sql", sql, "-o", "csv", "--from", dir); got.out != "n\npods\n" || got.err != "" {
			t.Errorf("%s, which does not read the table, says %s", sql, got)
		}
	}
	if err := store.Filled(tarn.At("1")); err != nil {
		t.Fatal(err)
	}
	if got := alone(t, "sql", "SELECT count(*) FROM pods", "-o", "csv", "--from", dir); got.out != "count(*)\n1\n" || got.err != "" {
		t.Errorf("after: %s", got)
	}
	if err := store.Apply(nil, tarn.Position{Version: "2"}); err != nil {
		t.Fatal(err)
	}
	if got := alone(t, "sql", "SELECT count(*) FROM pods", "-o", "csv", "--from", dir); got.out != "count(*)\n1\n" || got.err != "pods: the copy is not complete: an object could not be read or written.\n" {
		t.Errorf("of a copy that is not complete: %s", got)
	}
}

// What a page says beside its answer is said to the user.
func TestSQLOfAPageWhereSomethingIsNotThereYet(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Tarn-Unwritten", "pods")
		w.Header().Add("Tarn-Incomplete", "nodes")
		w.Header().Set("Trailer", "Tarn-More-Rows")
		fmt.Fprint(w, "name\n")
		w.Header().Set("Tarn-More-Rows", "true")
	}))
	defer page.Close()
	got := alone(t, "sql", "SELECT name FROM pods", "-o", "csv", "--from", page.URL)
	if got.out != "name\n" || !strings.Contains(got.err, "pods: the first state is not all on disk yet.\n") ||
		!strings.Contains(got.err, "nodes: the copy is not complete: an object could not be read or written.\n") || !strings.Contains(got.err, "--max-rows") {
		t.Errorf("it says %s", got)
	}
}

// Commands read a directory beside the mirror that writes it, follow it, and
// compare it with the server.
func TestReadingBesideAMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodPending))
		dir := filepath.Join(t.TempDir(), "replica")
		r.during(func(*lockedBuffer) {
			time.Sleep(5 * time.Second)
			watched := r.during(func(*lockedBuffer) {
				time.Sleep(5 * time.Second)
				r.put(pod("web-2", corev1.PodRunning), pod("web-3", corev1.PodPending))
				r.delete(pod("web-1", ""))
				time.Sleep(5 * time.Second)
			}, "watch", "pods", "--from", dir)
			for _, want := range []string{"ADDED    pods/default/web-1", "MODIFIED pods/default/web-2 STATUS=Pending → Running", "ADDED    pods/default/web-3", "DELETED  pods/default/web-1"} {
				if !strings.Contains(watched.out, want) {
					t.Errorf("watch does not say %q:\n%s", want, watched)
				}
			}
			fields := r.during(func(*lockedBuffer) {
				time.Sleep(5 * time.Second)
				r.put(pod("web-3", corev1.PodFailed))
				time.Sleep(5 * time.Second)
			}, "watch", "pods/web-3", "--diff", "--from", dir)
			if !strings.Contains(fields.out, "status.phase") || fields.code != 0 {
				t.Errorf("watch --diff says\n%s", fields)
			}
			if got := r.run("verify", "pods", "--from", dir); got.code != 0 || !strings.Contains(got.out, "equal") {
				t.Errorf("verify says\n%s", got)
			}
			if got := r.run("sql", "SELECT name, phase FROM pods ORDER BY name", "--from", dir, "-o", "csv"); got.out != "name,phase\nweb-2,Running\nweb-3,Failed\n" || got.err != "" {
				t.Errorf("sql says\n%s", got)
			}
			if err := r.run("mirror", "pods", "--to", dir).check(exitFailed, "in use", "one process"); err != nil {
				t.Error(err)
			}
		}, "mirror", "pods", "--to", dir)
		r.put(pod("web-2", corev1.PodFailed))
		if got := r.run("verify", "pods", "--from", dir); got.code != 0 || !strings.Contains(got.out, "equal") {
			t.Errorf("the directory is right for its version, and verify says\n%s", got)
		}
	})
}

// A mirror that is started again says what it has from disk, and how old that is,
// also while the server does not answer.
func TestMirrorFromDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodPending))
		dir := r.keep("pods")
		r.intercept = func(*http.Request, http.RoundTripper) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
		time.Sleep(40 * time.Second)
		got := r.during(func(*lockedBuffer) { time.Sleep(5 * time.Second) }, "mirror", "pods", "--to", dir)
		if !strings.Contains(got.out, "pods: from disk, 4") || !strings.Contains(got.out, "2 objects") {
			t.Errorf("it says\n%s", got)
		}
		r.screen = termtest.New(100, 12)
		got = r.during(func(*lockedBuffer) {
			time.Sleep(5 * time.Second)
			if text := r.screen.Styled(); !strings.Contains(text, "from disk, ") {
				t.Errorf("the view is\n%s", text)
			}
		}, "mirror", "pods", "--to", dir)
		r.screen, r.intercept = nil, nil
		got = r.during(func(*lockedBuffer) { time.Sleep(5 * time.Second) }, "mirror", "pods", "--to", dir)
		if !strings.Contains(got.out, "pods: synced, 2 objects") {
			t.Errorf("with the server it says\n%s", got)
		}
	})
}

func TestSQLOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodPending), deployment("web"), secret("s", "topsecret"))
		if got := r.run("sql", "SELECT name, phase FROM pods ORDER BY name", "-o", "csv"); got.out != "name,phase\nweb-1,Running\nweb-2,Pending\n" || got.err != "" {
			t.Errorf("it says\n%s", got)
		}
		if got := r.run("sql", "SELECT (SELECT count(*) FROM pods) + (SELECT count(*) FROM deployments_apps) AS n, (SELECT value FROM pods_labels LIMIT 1) AS app", "-o", "csv"); got.out != "n,app\n3,web\n" {
			t.Errorf("it says\n%s", got)
		}
		for _, c := range []struct{ flag, want string }{{"", "(hidden)"}, {"--show-secrets", "dG9wc2VjcmV0"}} {
			args := []string{"sql", "SELECT object ->> '$.data.password' AS password FROM secrets", "-o", "csv"}
			if c.flag != "" {
				args = append(args, c.flag)
			}
			if got := r.run(args...); got.out != "password\n"+c.want+"\n" {
				t.Errorf("%s says\n%s", c.flag, got)
			}
		}
		if err := r.run("sql", "SELECT * FROM podz").check(exitFailed, "no table podz", "did you mean pods?"); err != nil {
			t.Error(err)
		}
		if err := r.run("sql", "SELECT * FROM replicasets").check(exitFailed, "did you mean replicasets_apps?"); err != nil {
			t.Error(err)
		}
		r.intercept = refuse("pods", http.StatusForbidden, metav1.StatusReasonForbidden, "pods is forbidden")
		if err := r.run("sql", "SELECT * FROM pods").check(exitFailed, "forbidden"); err != nil {
			t.Error(err)
		}
	})
}
