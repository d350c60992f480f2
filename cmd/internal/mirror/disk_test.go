package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
	"github.com/tarnproject/tarn/verify"
)

func (r *rig) directory() string { return filepath.Join(r.TempDir(), "replica") }

func (r *rig) db(dir string, key []byte) *sqlite.DB {
	r.Helper()
	db, err := sqlite.Open(dir, sqlite.Options{Key: key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.Fatal(err)
	}
	return db
}

// kept starts a mirror with a disk; the end of it closes the directory.
func (r *rig) kept(dir string, disk Disk, opts Options, names ...string) (*Mirror, func()) {
	r.Helper()
	disk.DB = r.db(dir, nil)
	opts.Disk = &disk
	m, end := r.start(opts, names...)
	return m, closing(r, end, disk.DB)
}

// closing ends a mirror and then its directory.
func closing(r *rig, end func(), db *sqlite.DB) func() {
	return func() {
		end()
		if err := db.Close(); err != nil {
			r.Error(err)
		}
	}
}

func applied(name, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"app": name},
		Annotations: map[string]string{ondisk.LastApplied: value, "kapp.k14s.io/original": value, "kept": "yes"},
	}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// names are those that a table has.
func namesOf(t *Table) (names []string) {
	for key := range t.Store().All() {
		names = append(names, string(key))
	}
	slices.Sort(names)
	return names
}

// After a restart a mirror serves what the previous one knew while the server does not
// answer, and then the present content, without a list.
func TestMirrorSurvivesARestart(t *testing.T) {
	inBubble(t, func(r *rig) {
		dir := r.directory()
		r.server.Put(applied("a", "x"), applied("b", "x"))
		m, end := r.kept(dir, Disk{}, Options{}, "pods", "services")
		r.synced(m)
		end()
		r.server.Delete(applied("a", ""))
		r.server.Put(applied("c", "x"))
		var lists atomic.Int64
		var down atomic.Bool
		down.Store(true)
		r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			if down.Load() {
				return nil, errors.New("nobody is there")
			}
			if q := req.URL.Query(); strings.HasSuffix(req.URL.Path, "/pods") && q.Get("watch") == "" && q.Get("limit") != "1" {
				lists.Add(1)
			}
			return next.RoundTrip(req)
		})
		time.Sleep(42 * time.Second)
		m, end = r.kept(dir, Disk{}, Options{}, "pods", "services")
		defer end()
		synctest.Wait()
		pods := r.table(m, "pods")
		if got := namesOf(pods); !slices.Equal(got, []string{"default/a", "default/b"}) {
			t.Errorf("from disk it has %v", got)
		}
		if h := pods.Replica().Health(); !h.FromDisk || h.Synced || h.Age < 42*time.Second {
			t.Errorf("its health is %v", h)
		}
		if s := pods.Status(); s.Received != 2 || s.Objects != 2 {
			t.Errorf("its status is %+v", s)
		}
		down.Store(false)
		r.synced(m)
		if got := namesOf(pods); !slices.Equal(got, []string{"default/b", "default/c"}) {
			t.Errorf("then it has %v", got)
		}
		if n := lists.Load(); n > 0 {
			t.Errorf("it listed %d times", n)
		}
	})
}

// What kubectl applied is neither on disk nor in the copy, before a restart and
// after, unless that is asked for; Secrets are not on disk, unless asked for.
func TestWhatIsNotWritten(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", Annotations: map[string]string{ondisk.LastApplied: "topsecret"}},
		Data: map[string][]byte{"password": []byte("topsecret")}}
	for _, c := range []struct {
		name               string
		disk               Disk
		show               bool
		applied, onDisk    bool
		tables             string
		template, annotate string
	}{
		{name: "as it is", tables: "pods"},
		{name: "with what was applied", disk: Disk{LastApplied: true}, applied: true, onDisk: true, tables: "pods"},
		{name: "with hidden secrets", disk: Disk{Secrets: true}, tables: "pods secrets"},
		{name: "with secrets", disk: Disk{Secrets: true}, show: true, onDisk: true, tables: "pods secrets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				dir := r.directory()
				r.server.Put(applied("a", "topsecret"), secret)
				for _, life := range []string{"first", "second"} {
					m, end := r.kept(dir, c.disk, Options{ShowSecrets: c.show}, "pods", "secrets")
					r.synced(m)
					pod, ok := r.table(m, "pods").Store().Get("default/a")
					if _, has := pod.GetAnnotations()[ondisk.LastApplied]; !ok || has != c.applied || pod.GetAnnotations()["kept"] != "yes" {
						t.Errorf("in its %s life the copy has %v", life, pod.GetAnnotations())
					}
					result, err := verify.Once(r.Context(), r.table(m, "pods").Target(), verify.Options{})
					if err != nil || result.Verdict != verify.Equal {
						t.Errorf("in its %s life it is %v, %v", life, result.Verdict, err)
					}
					end()
				}
				if got := onDisk(r.T, dir, "topsecret", "dG9wc2VjcmV0"); got != c.onDisk {
					t.Errorf("on disk is what should not be: %v, want %v", got, c.onDisk)
				}
				result, err := sqlite.Query(r.Context(), dir, "SELECT group_concat(table_name, ' ') FROM (SELECT table_name FROM api_resources ORDER BY 1)", sqlite.Limits{})
				if err != nil || result.Rows[0][0] != c.tables {
					t.Errorf("the tables are %v, %v; want %s", result, err, c.tables)
				}
			})
		})
	}
}

// onDisk searches the file for texts, as any reader of the file could.
func onDisk(t *testing.T, dir string, words ...string) bool {
	t.Helper()
	view, err := sqlite.OpenReader(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	held, err := view.Holdings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, h := range held {
		_, err := view.Walk(t.Context(), h.Name, func(e sqlite.Entry) error {
			raw, err := e.Bytes()
			all = append(all, raw...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(string(all), word) })
}

func definitionOf(columns ...map[string]any) *unstructured.Unstructured {
	var all []any
	for _, c := range columns {
		all = append(all, c)
	}
	properties := func(fields map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": fields}
	}
	of := func(kind string) map[string]any { return map[string]any{"type": kind} }
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things.example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced",
			"names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": []any{"th"}},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": all,
				"schema": map[string]any{"openAPIV3Schema": properties(map[string]any{
					"spec": properties(map[string]any{"size": of("integer"), "theName": of("string"), "list": of("array")}),
					"status": properties(map[string]any{"ratio": of("number"), "conditions": map[string]any{"type": "array",
						"items": properties(map[string]any{"type": of("string"), "status": of("string")})}}),
				})},
			}},
		},
	}}
}

// Columns of custom resources come from their definition. When that changes, the table is
// built again; when it cannot be read, the columns stay.
func TestColumnsOfCustomResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{})
		defer server.Close()
		r := &rig{T: t, server: server}
		put := func(columns ...map[string]any) {
			t.Helper()
			if err := server.Put(definitionOf(columns...)); err != nil {
				t.Fatal(err)
			}
		}
		column := func(name, kind, path string) map[string]any {
			return map[string]any{"name": name, "type": kind, "jsonPath": path}
		}
		put()
		time.Sleep(time.Second)
		thing := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "default", "name": "a"},
			"spec": map[string]any{"size": int64(3), "theName": "x", "list": []any{"y"}},
			"status": map[string]any{"ratio": 0.5, "conditions": []any{
				map[string]any{"type": "Old", "status": "False"}, map[string]any{"type": "Ready", "status": "True"}}},
		}}
		if err := server.Put(thing); err != nil {
			t.Fatal(err)
		}
		var err error
		if r.catalog, err = Discover(t.Context(), server.Config()); err != nil {
			t.Fatal(err)
		}
		dir := r.directory()
		ask := func(sql, want string) {
			t.Helper()
			m, end := r.kept(dir, Disk{}, Options{}, "things")
			r.synced(m)
			end()
			result, err := sqlite.Query(t.Context(), dir, sql, sqlite.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := json.Marshal(result.Rows)
			if string(raw) != want {
				t.Errorf("%s: %s, want %s", sql, raw, want)
			}
		}
		ask("SELECT name, spec_size, spec_the_name, status_ratio FROM things_example_org", `[["a",3,"x",0.5]]`)
		put(column("Ready", "string", `.status.conditions[?(@.type=="Ready")].status`), column("Size", "integer", ".spec.size"),
			column("Name", "string", ".spec.theName"), column("Age", "date", ".metadata.creationTimestamp"), column("Bad", "string", ".spec["))
		ask("SELECT name, ready, size FROM things_example_org", `[["a","True",3]]`)
		r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "customresourcedefinitions") {
				return answer(req, http.StatusForbidden, metav1.StatusReasonForbidden), nil
			}
			return next.RoundTrip(req)
		})
		ask("SELECT name, ready, size FROM things_example_org", `[["a","True",3]]`)
	})
}

// A directory shows and follows what a mirror writes, narrowed as asked, and is
// compared with the server at its version.
func TestDirectoryFollowsItsMirror(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": []byte(strings.Repeat("k", 32))} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				dir := r.directory()
				db := r.db(dir, key)
				defer db.Close()
				r.server.Put(applied("a", "x"), applied("b", "x"))
				m, end := r.start(Options{Disk: &Disk{DB: db}}, "pods", "services")
				defer end()
				r.synced(m)
				time.Sleep(3 * time.Second)
				d, err := OpenDirectory(r.Context(), dir, key)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				pods, err := d.Catalog().Find("po")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(r.Context())
				copied, err := d.Start(ctx, r.config(), []Resource{pods}, Options{FieldSelector: "status.phase=Running", Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				r.synced(copied)
				table := r.table(copied, "pods")
				var seen []string
				table.Replica().Subscribe(func(c tarn.Change[Object]) {
					seen = append(seen, map[tarn.ChangeType]string{tarn.Add: "+", tarn.Update: "~", tarn.Delete: "-"}[c.Type]+string(c.Key))
				}, tarn.SubscribeOptions{})
				synctest.Wait()
				step := func(want string) {
					t.Helper()
					time.Sleep(3 * time.Second)
					synctest.Wait()
					slices.Sort(seen)
					if got := strings.Join(seen, " "); got != want {
						t.Errorf("it saw %s, want %s", got, want)
					}
					seen = nil
				}
				step("+default/a +default/b")
				changed := applied("b", "x")
				changed.Labels["new"] = "yes"
				r.server.Put(changed, applied("c", "x"))
				r.server.Delete(applied("a", "x"))
				step("+default/c -default/a ~default/b")
				pending := applied("c", "x")
				pending.Status.Phase = corev1.PodPending
				r.server.Put(pending)
				step("-default/c")
				if h := table.Replica().Health(); h.Err != nil || h.Rewinds > 0 || h.Lists["initial"]+h.Lists["start"] > 1 {
					t.Errorf("its health is %+v", h)
				}
				cancel()
				<-copied.Done()

				again, endAgain := context.WithCancel(r.Context())
				defer func() { endAgain(); <-copied.Done() }()
				if copied, err = d.Start(again, r.config(), []Resource{pods}, Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
					t.Fatal(err)
				}
				r.synced(copied)
				result, err := verify.Once(r.Context(), r.table(copied, "pods").Target(), verify.Options{})
				if err != nil || result.Verdict != verify.Equal || result.Objects != 2 {
					t.Errorf("compared with the server it is %+v, %v", result, err)
				}
			})
		})
	}
}
