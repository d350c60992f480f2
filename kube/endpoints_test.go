package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// scriptedEndpoint is a server that answers with a status, or fails.
type scriptedEndpoint struct {
	status int
	err    error
	bodies []string
	// body is that of the answer, empty if nil.
	body io.ReadCloser
	// hangs says that no answer comes.
	hangs bool
}

func (s *scriptedEndpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body.Close()
		body = string(raw)
	}
	s.bodies = append(s.bodies, req.Method+" "+req.URL.String()+" "+body)
	if s.hangs {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	answer := io.ReadCloser(http.NoBody)
	if s.body != nil {
		answer = s.body
	}
	return &http.Response{StatusCode: s.status, Status: fmt.Sprint(s.status), Body: answer, Request: req}, nil
}

// client-go resumes a watch whose connection breaks, whatever the transport says of it. It
// would list after an error that it does not know.
func TestEndpointsBrokenWatch(t *testing.T) {
	broken := errors.New("http2: client connection force closed via ClientConn.Close")
	for query, want := range map[string]error{"?watch=true": io.ErrUnexpectedEOF, "?watch=1": io.ErrUnexpectedEOF, "": broken} {
		client, cfg, all := scriptedGroup(t)
		all[0].body = io.NopCloser(io.MultiReader(strings.NewReader("event"), iotest.ErrReader(broken)))
		answer, err := client.Get(cfg.Host + "/api/v1/pods" + query)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(content) != "event" || !errors.Is(err, want) {
			t.Errorf("%q: %q and then %v, want %v", query, content, err, want)
		}
	}
}

// scriptedGroup is a group of endpoints a, b and c.
func scriptedGroup(t *testing.T) (*http.Client, *rest.Config, []*scriptedEndpoint) {
	var all []*scriptedEndpoint
	var configs []*rest.Config
	for _, name := range []string{"a", "b", "c"} {
		e := &scriptedEndpoint{status: http.StatusOK}
		all = append(all, e)
		configs = append(configs, &rest.Config{Host: "http://" + name + "/on/" + name, Transport: e, QPS: 7})
	}
	cfg, err := Endpoints(configs...)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client, cfg, all
}

func refused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func ask(t *testing.T, client *http.Client, method, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://a/on/a/api/v1/pods%2Fx?watch=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(req)
}

func TestEndpointsAreAskedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, cfg, all := scriptedGroup(t)
		a, b := all[0], all[1]
		served := func(want *scriptedEndpoint) {
			t.Helper()
			for _, e := range all {
				e.bodies = nil
			}
			resp, err := ask(t, client, http.MethodGet, "")
			if err != nil || resp.StatusCode != http.StatusOK || len(want.bodies) != 1 {
				t.Fatalf("%v, %v; asked: a %v, b %v, c %v", resp, err, a.bodies, b.bodies, all[2].bodies)
			}
		}
		served(a)

		a.err = refused()
		served(b)
		if len(a.bodies) != 1 {
			t.Fatal("the first endpoint was not asked first")
		}
		if got := b.bodies[0]; got != "GET http://b/on/b/api/v1/pods%2Fx?watch=1 " {
			t.Fatalf("the second was asked for %s", got)
		}
		served(b)
		if len(a.bodies) != 0 {
			t.Fatal("an endpoint that failed just now is asked again")
		}
		if h := HealthOfEndpoints(cfg); h[0].Failures != 1 || !errors.Is(h[0].Err, syscall.ECONNREFUSED) || !h[0].RetryAt.After(time.Now()) || h[1].Failures != 0 {
			t.Fatalf("health is %v", h)
		}

		// It is tried again after pauses that grow, and used as soon as it works.
		for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			time.Sleep(pause / 2)
			served(b)
			if len(a.bodies) != 0 {
				t.Fatalf("asked again after %v", pause/2)
			}
			time.Sleep(pause / 2)
			served(b)
			if len(a.bodies) != 1 {
				t.Fatalf("not asked again after %v", pause)
			}
		}
		a.err = nil
		time.Sleep(maxEndpointBackoff)
		served(a)
		if h := HealthOfEndpoints(cfg); h[0].Failures != 0 || h[0].Err != nil {
			t.Fatalf("health is %v", h)
		}
	})
}

func TestEndpointsThatAreNotAvailable(t *testing.T) {
	client, cfg, all := scriptedGroup(t)
	all[0].status = http.StatusServiceUnavailable
	if resp, err := ask(t, client, http.MethodGet, ""); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	if h := HealthOfEndpoints(cfg); h[0].Failures != 1 || !strings.Contains(h[0].Err.Error(), "503") {
		t.Fatalf("health is %v", h)
	}

	// What is not available anywhere is no fault of an endpoint.
	client, cfg, all = scriptedGroup(t)
	for _, e := range all {
		e.status = http.StatusServiceUnavailable
	}
	if resp, err := ask(t, client, http.MethodGet, ""); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatal(resp, err)
	}
	for _, h := range HealthOfEndpoints(cfg) {
		if h.Failures != 0 {
			t.Fatalf("health is %v", h)
		}
	}
}

// An endpoint that takes requests and does not answer them, as a process that was stopped, has
// failed when a request was given up that it had some time for. The next one goes elsewhere.
func TestEndpointsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, cfg, all := scriptedGroup(t)
		all[0].hangs = true
		giveUp := func(after time.Duration, end func(ctx context.Context) (context.Context, context.CancelFunc)) {
			t.Helper()
			ctx, cancel := end(t.Context())
			defer cancel()
			time.AfterFunc(after, cancel)
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a/on/a/api/v1/pods", nil)
			if _, err := client.Do(req); err == nil {
				t.Fatal("it was answered")
			}
		}
		giveUp(time.Second, context.WithCancel)
		if h := HealthOfEndpoints(cfg); h[0].Failures != 0 {
			t.Errorf("who is impatient makes an endpoint fail: %v", h)
		}
		giveUp(time.Minute, context.WithCancel)
		giveUp(time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			time.Sleep(maxEndpointBackoff) // so that it is asked again
			return context.WithTimeout(ctx, 20*time.Second)
		})
		if h := HealthOfEndpoints(cfg); h[0].Failures != 2 || !strings.Contains(h[0].Err.Error(), "no answer within 20s") {
			t.Errorf("health is %v", h)
		}
		resp, err := ask(t, client, http.MethodGet, "")
		if err != nil || resp.StatusCode != http.StatusOK || len(all[1].bodies) != 1 {
			t.Errorf("%v %v; the second was asked for %v", resp, err, all[1].bodies)
		}
	})
}

func TestEndpointsRepeatNoWrite(t *testing.T) {
	client, _, all := scriptedGroup(t)
	all[0].err = errors.New("the connection broke")
	if _, err := ask(t, client, http.MethodPost, "new"); err == nil || len(all[1].bodies) != 0 {
		t.Fatalf("%v; the second endpoint got %v", err, all[1].bodies)
	}
	client, _, all = scriptedGroup(t)
	all[0].err = refused()
	if resp, err := ask(t, client, http.MethodPost, "new"); err != nil || len(all[1].bodies) != 1 || !strings.HasSuffix(all[1].bodies[0], " new") {
		t.Fatalf("%v, %v; the second endpoint got %v", resp, err, all[1].bodies)
	}
}

func TestEndpointsThatAreAllGone(t *testing.T) {
	client, _, all := scriptedGroup(t)
	for _, e := range all {
		e.err = refused()
	}
	_, err := ask(t, client, http.MethodGet, "")
	if !utilnet.IsConnectionRefused(err) || !strings.Contains(err.Error(), "none of the 3 endpoints can be reached: a: ") {
		t.Errorf("the error is %v", err)
	}
	// They are asked all the same: there is no other endpoint.
	all[2].err = nil
	if resp, err := ask(t, client, http.MethodGet, ""); err != nil || resp.StatusCode != http.StatusOK {
		t.Error(resp, err)
	}

	client, cfg, all := scriptedGroup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all[0].err = context.Canceled
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a/on/a/api", nil)
	if _, err := client.Do(req); !errors.Is(err, context.Canceled) || len(all[1].bodies) != 0 || HealthOfEndpoints(cfg)[0].Failures != 0 {
		t.Errorf("a request that was given up: %v, %v", err, HealthOfEndpoints(cfg))
	}
}

func TestEndpointsConfig(t *testing.T) {
	_, cfg, _ := scriptedGroup(t)
	if cfg.QPS != 7 || serverOf(cfg) != "http://c/on/c" {
		t.Errorf("QPS %v, server %s", cfg.QPS, serverOf(cfg))
	}
	for _, bad := range [][]*rest.Config{{}, {nil}, {{Host: "http://a:b:c"}}, {{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}}} {
		if _, err := Endpoints(bad...); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if HealthOfEndpoints(&rest.Config{}) != nil {
		t.Error("a plain config has endpoints")
	}
}

// A copy whose endpoint dies continues at another one where it stopped, without a list.
func TestEndpointsResumeWithoutList(t *testing.T) {
	origin := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer origin.Close()
	lists := make(chan string, 100)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/pods") && (q.Get("watch") == "" || q.Get("sendInitialEvents") == "true") {
			lists <- r.URL.String()
		}
		origin.ServeHTTP(w, r)
	}))
	defer front.Close()
	to, err := url.Parse(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	newRelay := func() *httptest.Server {
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		return httptest.NewServer(proxy)
	}
	first, second := newRelay(), newRelay()
	defer second.Close()
	cfg, err := Endpoints(&rest.Config{Host: first.URL}, &rest.Config{Host: second.URL}, &rest.Config{Host: front.URL})
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string) {
		t.Helper()
		pod := newPod(1)
		pod.Name, pod.ResourceVersion = name, ""
		if err := origin.Put(pod); err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	ctx, stop := context.WithCancel(t.Context())
	pods, err := Reflect[*corev1.Pod](ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); <-pods.Done() }()
	if err := pods.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	read := len(lists)

	first.Listener.Close() // first, so that nobody comes back
	first.CloseClientConnections()
	first.Close()
	put("two")
	if err := pods.WaitFor(ctx, tarn.Version(origin.Version())); err != nil {
		t.Fatal(err)
	}
	if pods.Len() != 2 {
		t.Errorf("%d pods, want 2", pods.Len())
	}
	if len(lists) != read {
		t.Errorf("it read everything again: %s", <-lists)
	}
	if h := HealthOfEndpoints(cfg); h[0].Failures == 0 || h[1].Failures != 0 {
		t.Errorf("health is %v", h)
	}
}
