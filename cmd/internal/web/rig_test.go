package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
)

// lastApplied is where kubectl apply leaves a copy of the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// rig is a cluster in the process, a mirror of it, and the site over that.
type rig struct {
	t      *testing.T
	server *apiserver.Server
	mirror *mirror.Mirror
	site   *Site
}

type rigOptions struct {
	mirror  mirror.Options
	web     Options
	objects []runtime.Object
	// disk keeps the mirror on disk, as it says.
	disk *mirror.Disk
	key  []byte
	// history is what the disk keeps of the past.
	history sqlite.History
	// kinds are custom resources that are mirrored too.
	kinds []apiserver.Kind
	// missing is a resource about which the server keeps silent.
	missing string
	// outage can cut the mirror off from the server.
	outage *outage
}

// without is a server that does not have a resource's objects ready.
type without struct {
	missing string
	next    http.RoundTripper
}

func (w without) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/"+w.missing) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return w.next.RoundTrip(r)
}

// newRig starts everything and waits until the mirror has synced, which it does not
// if a resource is missing.
func newRig(t *testing.T, opts rigOptions) *rig {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	if err := errors.Join(server.Register(opts.kinds...), server.Put(opts.objects...)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	catalog, err := mirror.Discover(ctx, server.Config())
	if err != nil {
		t.Fatal(err)
	}
	var resources []mirror.Resource
	names := []string{"pods", "replicasets", "deployments", "secrets", "nodes"}
	for _, kind := range opts.kinds {
		names = append(names, kind.Kind)
	}
	for _, name := range names {
		resource, err := catalog.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, resource)
	}
	opts.mirror.Logger = slog.New(slog.DiscardHandler)
	if opts.disk != nil {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "replica"), sqlite.Options{Logger: opts.mirror.Logger, Key: opts.key, History: opts.history})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		opts.disk.DB, opts.mirror.Disk = db, opts.disk
	}
	config := server.Config()
	if opts.missing != "" {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return without{opts.missing, next} })
	}
	if opts.outage != nil {
		config.Wrap(opts.outage.wrap)
	}
	m, err := mirror.Start(ctx, config, resources, opts.mirror)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-m.Done()
		server.Close()
	})
	if opts.missing == "" {
		waiting, stop := context.WithTimeout(ctx, 20*time.Second)
		defer stop()
		if err := m.WaitSynced(waiting); err != nil {
			t.Fatal(err)
		}
	}
	opts.web.Logger = opts.mirror.Logger
	opts.web.Anonymous = opts.web.Token == "" && opts.web.TokenFile == ""
	site, err := New(m, opts.web)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, server, m, site}
}

// put writes objects and waits until the mirror has them.
func (r *rig) put(objects ...runtime.Object) {
	r.t.Helper()
	if err := r.server.Put(objects...); err != nil {
		r.t.Fatal(err)
	}
	for _, object := range objects {
		r.catchUp(r.tableOf(object))
	}
}

func (r *rig) remove(objects ...runtime.Object) {
	r.t.Helper()
	if err := r.server.Delete(objects...); err != nil {
		r.t.Fatal(err)
	}
	for _, object := range objects {
		r.catchUp(r.tableOf(object))
	}
}

func (r *rig) catchUp(table *mirror.Table) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := table.Replica().WaitFor(ctx, tarn.Version(r.server.Version())); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) tableOf(object runtime.Object) *mirror.Table {
	name := map[string]string{
		"*v1.Pod": "pods", "*v1.Node": "nodes", "*v1.Secret": "secrets", "*v1.ReplicaSet": "replicasets.apps", "*v1.Deployment": "deployments.apps",
		"*unstructured.Unstructured": "things.example.com",
	}[fmt.Sprintf("%T", object)]
	table, ok := r.mirror.Table(name)
	if !ok {
		r.t.Fatalf("%T has no table", object)
	}
	return table
}

// ask makes a request as curl would, changed by the functions.
func (r *rig) ask(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host = "localhost:8276"
	for _, c := range change {
		c(request)
	}
	recorder := httptest.NewRecorder()
	r.site.ServeHTTP(recorder, request)
	return recorder
}

// get decodes the JSON of a request that must succeed.
func get[T any](r *rig, path string, change ...func(*http.Request)) T {
	r.t.Helper()
	answer := r.ask(path, change...)
	var value T
	if answer.Code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &value); err != nil {
		r.t.Fatalf("%s: %v in %s", path, err, answer.Body)
	}
	return value
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) {
	return func(r *http.Request) { r.Host = name }
}

func pod(namespace, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": strings.Split(name, "-")[0]}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func ownedBy(kind, name string, uid types.UID) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid}}
	}
}

func replicaSet(namespace, name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{
			lastApplied: `{"stringData":{"password":"` + value + `"}}`, "note": "mine",
		}},
		Data: map[string][]byte{"password": []byte(value)},
	}
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// logTo is a logger whose lines a test reads.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
