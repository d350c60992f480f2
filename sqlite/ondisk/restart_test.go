package ondisk

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// tap notes the requests that were made.
type tap struct {
	mu       sync.Mutex
	requests []string
	// ready is closed when requests may be made.
	ready chan struct{}
	// refuse has the status that some requests are answered with.
	refuse map[string]int
	// forbidden is a namespace that may not be read.
	forbidden string
}

func (w *tap) config(server *apiserver.Server) *rest.Config {
	cfg := server.Config()
	inner := cfg.WrapTransport
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
		if inner != nil {
			rt = inner(rt)
		}
		return recorder{w, rt}
	}
	if t := cfg.Transport; t != nil {
		cfg.Transport = recorder{w, t}
		cfg.WrapTransport = inner
	}
	return cfg
}

type recorder struct {
	w  *tap
	rt http.RoundTripper
}

func (r recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	if r.w.ready != nil {
		<-r.w.ready
	}
	what := "get"
	values := q.URL.Query()
	switch path := q.URL.Path; {
	case values.Get("watch") != "" && values.Get("sendInitialEvents") != "":
		what = "stream"
	case values.Get("watch") != "":
		what = "watch"
	case values.Get("limit") == "1":
		what = "probe"
	case strings.HasSuffix(path, "/pods"):
		what = "list"
	case strings.HasSuffix(path, "/kube-system"):
		what = "uid"
	}
	r.w.mu.Lock()
	r.w.requests = append(r.w.requests, what)
	r.w.mu.Unlock()
	status := r.w.refuse[what]
	if r.w.forbidden != "" && strings.Contains(q.URL.Path, "/namespaces/"+r.w.forbidden+"/") {
		status = http.StatusForbidden
	}
	if status != 0 {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: q}, nil
	}
	return r.rt.RoundTrip(q)
}

// taken are the requests since it was last asked.
func (w *tap) taken() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.requests, " ")
	w.requests = nil
	return s
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name[:1]}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// process is one process with a replica of pods.
type process struct {
	*tarn.Replica[*corev1.Pod]
	t      *testing.T
	db     *sqlite.DB
	cancel context.CancelFunc
	mu     sync.Mutex
	// mirror is built from the changes by the handler; events lists them.
	mirror map[tarn.Key]string
	events []string
}

func startProcess(t *testing.T, dir string, server *apiserver.Server, w *tap, opts []Option, more ...kube.Option) *process {
	t.Helper()
	db, err := sqlite.Open(dir, sqlite.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	l := &process{t: t, db: db, cancel: cancel, mirror: map[tarn.Key]string{}}
	w.ready = make(chan struct{})
	client, err := kube.NewClient(w.config(server))
	must(t, err)
	more = append(more, In[*corev1.Pod](db, opts...), kube.WithClient(client), kube.OnError(func(context.Context, error) {}),
		kube.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}))
	l.Replica, err = kube.Reflect[*corev1.Pod](ctx, nil, more...)
	must(t, err)
	_, err = l.Subscribe(l.take, tarn.SubscribeOptions{})
	must(t, err)
	close(w.ready) // so that the handler sees all that differs from the disk
	return l
}

func (l *process) take(c tarn.Change[*corev1.Pod]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := c.Object.Name
	switch c.Type {
	case tarn.Add:
		l.events = append(l.events, "+"+name)
	case tarn.Update:
		l.events = append(l.events, "~"+name)
	case tarn.Delete:
		l.events = append(l.events, "-"+name)
		delete(l.mirror, c.Key)
		return
	}
	l.mirror[c.Key] = c.Object.ResourceVersion
}

// seenEvents are the events that the handler got, the initial adds sorted.
func (l *process) seenEvents() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.events) && l.events[n][0] == '+' {
		n++
	}
	slices.Sort(l.events[:n])
	return strings.Join(l.events, " ")
}

func (l *process) end() {
	l.t.Helper()
	l.cancel()
	<-l.Done()
	must(l.t, l.db.Close())
}

// converged compares the copy and the handler's view with the server.
func (l *process) converged(server *apiserver.Server) {
	l.t.Helper()
	synctest.Wait()
	want := map[tarn.Key]string{}
	client, err := kube.NewClient(server.Config())
	must(l.t, err)
	source, err := kube.NewSource[*corev1.Pod](client, kube.Collection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: podType}, kube.SourceOptions{})
	must(l.t, err)
	page, err := source.List(l.t.Context(), tarn.ListQuery{})
	must(l.t, err)
	for _, p := range page.Items {
		want[tarn.Key(p.Namespace+"/"+p.Name)] = p.ResourceVersion + p.Spec.NodeName
	}
	got, versions := map[tarn.Key]string{}, map[tarn.Key]string{}
	for key, p := range l.All() {
		got[key], versions[key] = p.ResourceVersion+p.Spec.NodeName, p.ResourceVersion
	}
	if !maps.Equal(got, want) {
		l.t.Errorf("the copy has %v, the server %v", got, want)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !maps.Equal(l.mirror, versions) {
		l.t.Errorf("the handler has %v, the copy %v", l.mirror, versions)
	}
}

func directory(t testing.TB) string { return filepath.Join(t.TempDir(), "replica") }

// A process ends, the cluster changes, and another begins where it stopped.
func TestRestart(t *testing.T) {
	for _, test := range []struct {
		name      string
		meanwhile func(t *testing.T, s *apiserver.Server)
		requests  string
		events    string
		opts      []Option
		more      []kube.Option
	}{
		{name: "nothing happened", meanwhile: func(*testing.T, *apiserver.Server) {},
			requests: "uid probe watch", events: "+a1 +a2 +b1"},
		{name: "pods changed", meanwhile: func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(pod("a1", "node-9"), pod("c1", "node-3")))
			must(t, s.Delete(pod("a2", "")))
		}, requests: "uid probe watch", events: "+a1 +a2 +b1 ~a1 +c1 -a2"},
		{name: "others changed", meanwhile: func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}))
		}, requests: "uid probe watch", events: "+a1 +a2 +b1"},
		{name: "the history is gone", meanwhile: func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(pod("a1", "node-9")))
			must(t, s.Delete(pod("b1", "")))
			s.Compact()
		}, requests: "uid probe watch list watch", events: "+a1 +a2 +b1 -b1 ~a1", more: []kube.Option{kube.WatchList(false)}},
		{name: "on disk only", opts: []Option{Only()}, meanwhile: func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(pod("a1", "node-9")))
		}, requests: "uid probe watch", events: "+a1 +a2 +b1 ~a1"},
		{name: "of several namespaces", meanwhile: func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(pod("a1", "node-9")))
		}, requests: "uid probe probe watch watch", events: "+a1 +a2 +b1 ~a1",
			more: []kube.Option{kube.WatchList(false), kube.Namespaces("default", "other")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				must(t, server.Put(pod("a1", "node-1"), pod("a2", "node-1"), pod("b1", "node-2")))
				w, dir := &tap{}, directory(t)
				first := startProcess(t, dir, server, w, test.opts, test.more...)
				must(t, first.WaitSynced(t.Context()))
				first.converged(server)
				first.end()
				w.taken()
				test.meanwhile(t, server)

				second := startProcess(t, dir, server, w, test.opts, test.more...)
				start := time.Now()
				must(t, second.WaitSynced(t.Context()))
				if d := time.Since(start); d > 3*time.Second {
					t.Errorf("it took %v to sync", d)
				}
				second.converged(server)
				requests := strings.Fields(w.taken())
				if strings.Contains(test.name, "namespaces") {
					slices.Sort(requests[1:])
				}
				if got := strings.Join(requests, " "); got != test.requests {
					t.Errorf("the wire shows %q, want %q", got, test.requests)
				}
				if got := second.seenEvents(); got != test.events {
					t.Errorf("the handler got %q, want %q", got, test.events)
				}
				must(t, server.Put(pod("d1", "node-4")))
				time.Sleep(time.Second)
				second.converged(server)
				second.end()
			})
		})
	}
}

var podType = collectionType[*corev1.Pod]()

// A server that was restored from a backup, and another server at the same address, are
// detected, and the content is read again.
func TestAnotherPast(t *testing.T) {
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprint("another cluster: ", other), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{})
				defer server.Close()
				must(t, server.Put(pod("a1", "node-1")))
				backup := server.Snapshot()
				must(t, server.Put(pod("a1", "node-2"), pod("b1", "node-2")))
				w, dir := &tap{}, directory(t)
				first := startProcess(t, dir, server, w, nil)
				must(t, first.WaitSynced(t.Context()))
				synctest.Wait()
				first.end()
				if other {
					server.Close()
					server = apiserver.New(apiserver.Options{})
					defer server.Close()
					for range 20 {
						must(t, server.Put(pod("z1", "node-1")))
					}
				} else {
					must(t, server.Restore(backup))
				}
				second := startProcess(t, dir, server, w, nil)
				must(t, second.WaitSynced(t.Context()))
				second.converged(server)
				if h := second.Health(); h.Synced == false || other && h.Lists["other source"] != 1 || !other && h.Rewinds != 1 {
					t.Errorf("Health is %+v", h)
				}
				second.end()
			})
		})
	}
}

// Other selectors are another copy.
func TestAnotherSelection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{})
		defer server.Close()
		must(t, server.Put(pod("a1", "node-1"), pod("b1", "node-2")))
		w, dir := &tap{}, directory(t)
		first := startProcess(t, dir, server, w, nil)
		must(t, first.WaitSynced(t.Context()))
		synctest.Wait()
		first.end()
		second := startProcess(t, dir, server, w, nil, kube.LabelSelector("app=a"))
		must(t, second.WaitSynced(t.Context()))
		synctest.Wait()
		if second.Len() != 1 || second.seenEvents() != "+a1" {
			t.Errorf("there are %d objects, the handler got %q", second.Len(), second.seenEvents())
		}
		if h := second.Health(); h.Disk == nil || !strings.Contains(h.Disk.Note, "app=a") {
			t.Errorf("Health says %+v", h.Disk)
		}
		second.end()
	})
}
