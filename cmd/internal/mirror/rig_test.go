package mirror

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
)

func TestMain(m *testing.M) {
	// klog's flusher lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// rig is a server in a bubble, with something in between that misbehaves.
type rig struct {
	*testing.T
	server  *apiserver.Server
	catalog *Catalog
	// between sees every request; nil lets all pass.
	between atomic.Pointer[func(*http.Request, http.RoundTripper) (*http.Response, error)]
}

func inBubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, server: apiserver.New(apiserver.Options{})}
		defer r.server.Close()
		var err error
		if r.catalog, err = Discover(t.Context(), r.server.Config()); err != nil {
			t.Fatal(err)
		}
		test(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// config leads to the server past what stands in between.
func (r *rig) config() *rest.Config {
	cfg := r.server.Config()
	next := cfg.Transport
	cfg.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
		if between := r.between.Load(); between != nil {
			return (*between)(req, next)
		}
		return next.RoundTrip(req)
	})
	return cfg
}

// interfere puts something in between; nil takes it away.
func (r *rig) interfere(f func(*http.Request, http.RoundTripper) (*http.Response, error)) {
	if f == nil {
		r.between.Store(nil)
		return
	}
	r.between.Store(&f)
}

// answer makes an answer of a status code in the server's place.
func answer(req *http.Request, code int, reason metav1.StatusReason) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no %s","reason":%q,"code":%d}`, req.URL.Path, reason, code)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// start starts a mirror of the named resources, and returns what ends it.
func (r *rig) start(opts Options, names ...string) (*Mirror, func()) {
	r.Helper()
	var resources []Resource
	for _, name := range names {
		resource, err := r.catalog.Find(name)
		if err != nil {
			r.Fatal(err)
		}
		resources = append(resources, resource)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	m, err := Start(ctx, r.config(), resources, opts)
	if err != nil {
		cancel()
		r.Fatal(err)
	}
	return m, func() {
		cancel()
		<-m.Done()
	}
}

func (r *rig) synced(m *Mirror) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Minute)
	defer cancel()
	if err := m.WaitSynced(ctx); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) table(m *Mirror, name string) *Table {
	r.Helper()
	t, ok := m.Table(name)
	if !ok {
		r.Fatalf("no table %s", name)
	}
	return t
}

// put writes config maps.
func (r *rig) put(namespace string, names ...string) {
	r.Helper()
	for _, name := range names {
		if err := r.server.Put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Data:       map[string]string{"version": r.server.Version()},
		}); err != nil {
			r.Fatal(err)
		}
	}
}

// keys are those of a table, in order.
func keys(t *Table) string {
	var all []string
	for _, key := range t.Store().Keys() {
		all = append(all, string(key))
	}
	return strings.Join(all, " ")
}

// held is a body that nothing can be read of until it is released.
type held struct {
	io.ReadCloser
	release <-chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	<-h.release
	return h.ReadCloser.Read(p)
}
