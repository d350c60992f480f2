package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// All of a config reaches the requests.
func TestClientRespectsConfig(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		answer(w, jsonType, podList(t, jsonType, newPods(2), "9"))
	})
	cfg := &rest.Config{
		Host: s.URL + "/prefix", BearerToken: "secret", UserAgent: "me/1", DisableCompression: true,
		Impersonate: rest.ImpersonationConfig{UserName: "ops", Groups: []string{"g"}},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				r.Header.Set("Wrapped", "yes")
				return next.RoundTrip(r)
			})
		},
	}
	client, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.rest.Client.CloseIdleConnections()
	source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if page, err := source.List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Items) != 2 {
		t.Fatal(len(page.Items), err)
	}
	r := s.first()
	for header, want := range map[string]string{
		"Authorization": "Bearer secret", "User-Agent": "me/1", "Impersonate-User": "ops", "Impersonate-Group": "g",
		"Wrapped": "yes", "Accept-Encoding": "identity",
	} {
		if got := r.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	if r.URL.Path != "/prefix/api/v1/pods" {
		t.Errorf("path %s", r.URL.Path)
	}
	if cfg.GroupVersion != nil || cfg.NegotiatedSerializer != nil {
		t.Error("the config was changed")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClientUserAgent(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {})
	client, err := NewClient(s.config())
	if err != nil {
		t.Fatal(err)
	}
	defer client.rest.Client.CloseIdleConnections()
	source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = source.List(t.Context(), tarn.ListQuery{})
	if got := s.first().UserAgent(); got != rest.DefaultKubernetesUserAgent() {
		t.Errorf("User-Agent %q", got)
	}
}

// limiter counts the calls that wait for it.
type limiter struct {
	flowcontrol.RateLimiter
	waits atomic.Int32
	err   error
}

func (l *limiter) Wait(context.Context) error {
	l.waits.Add(1)
	return l.err
}

// Lists are limited, watches are not, as in client-go.
func TestClientRateLimit(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
	})
	l := &limiter{}
	source, err := NewSource[*corev1.Pod](s.client(t, func(cfg *rest.Config) { cfg.RateLimiter = l }), pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := source.List(t.Context(), tarn.ListQuery{}); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := source.Watch(t.Context(), tarn.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	stream.Close()
	if got := l.waits.Load(); got != 3 {
		t.Errorf("waited %d times", got)
	}
	l.err = io.ErrClosedPipe
	if _, err := source.List(t.Context(), tarn.ListQuery{}); err == nil || !strings.Contains(err.Error(), "rate limiter") {
		t.Errorf("a limiter that fails: %v", err)
	}
}

type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(code int, agent, text string) { w.texts = append(w.texts, text) }

func TestClientWarnings(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Warning", `299 - "old version"`)
		answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
	})
	seen := &warnings{}
	source, err := NewSource[*corev1.Pod](s.client(t, func(cfg *rest.Config) { cfg.WarningHandler = seen }), pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.List(t.Context(), tarn.ListQuery{}); err != nil {
		t.Fatal(err)
	}
	if len(seen.texts) != 1 || seen.texts[0] != "old version" {
		t.Errorf("warnings %q", seen.texts)
	}
}

// The config's timeout ends a watch normally, and a list with an error.
func TestClientTimeout(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		if r.URL.Query().Get("watch") != "" {
			_, _ = w.Write(event(t, jsonType, "ADDED", newPod(1)))
		} else {
			_, _ = w.Write([]byte(`{"items":[`))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	connections := *s.Client()
	connections.Timeout = 300 * time.Millisecond
	client, err := NewClient(s.config(), WithHTTPClient(&connections))
	if err != nil {
		t.Fatal(err)
	}
	source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := source.Watch(t.Context(), tarn.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if events, err := collect(t, stream, 8); err != io.EOF || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if _, err := source.List(t.Context(), tarn.ListQuery{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("list: %v", err)
	}
}

func TestNewClientErrors(t *testing.T) {
	for want, cfg := range map[string]*rest.Config{
		"the config is nil":  nil,
		"host must be a URL": {Host: "a/b/c"},
		"cannot connect to":  {Host: "x", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("?")}},
	} {
		if _, err := NewClient(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	pool := wire.NewPool()
	client, err := NewClient(&rest.Config{Host: "x"}, WithPool(pool))
	if err != nil || client.Pool() != pool {
		t.Errorf("%v, %v", client, err)
	}
}
