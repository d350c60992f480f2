package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
)

// clientOf makes a client of the REST client of a clientset.
func clientOf(t *testing.T, cfg *rest.Config) (*Client, *kubernetes.Clientset) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ClientOf(clientset.CoreV1().RESTClient().(*rest.RESTClient))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.rest.Client.CloseIdleConnections)
	return client, clientset
}

// A server cannot tell the requests from those of the clientset.
func TestClientOfSendsTheSame(t *testing.T) {
	for name, change := range map[string]func(*rest.Config){
		"as it is": func(*rest.Config) {},
		"JSON":     func(c *rest.Config) { c.ContentType = jsonType },
		"protobuf": func(c *rest.Config) { c.ContentType = protobufType },
		"all":      func(c *rest.Config) { c.BearerToken, c.UserAgent, c.DisableCompression = "secret", "me/1", true },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
			})
			cfg := s.config()
			cfg.Host += "/prefix"
			change(cfg)
			client, clientset := clientOf(t, cfg)
			source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := clientset.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "7", Limit: 3}); err != nil {
				t.Fatal(err)
			}
			w, err := clientset.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](400)})
			if err != nil {
				t.Fatal(err)
			}
			w.Stop()
			if _, err := source.List(t.Context(), tarn.ListQuery{AtLeast: "7", Limit: 3}); err != nil {
				t.Fatal(err)
			}
			stream, err := source.Watch(t.Context(), tarn.WatchQuery{From: "7", Timeout: 400e9})
			if err != nil {
				t.Fatal(err)
			}
			stream.Close()
			sent := s.requests
			if len(sent) != 4 {
				t.Fatalf("%d requests", len(sent))
			}
			for i, r := range sent[:2] {
				if diff := cmp.Diff(r.URL.RequestURI(), sent[2+i].URL.RequestURI()); diff != "" {
					t.Errorf("addresses (-clientset +ours): %s", diff)
				}
				if diff := cmp.Diff(r.Header, sent[2+i].Header); diff != "" {
					t.Errorf("headers (-clientset +ours): %s", diff)
				}
			}
		})
	}
}

// The time limits in the requests are those of client-go's clients: typed ones replace that of
// the config, the metadata client does so in watches, and the dynamic one never.
func TestClientOfTimeLimits(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
	})
	asked := func(o metav1.ListOptions) metav1.ListOptions { o.TimeoutSeconds = ptr.To[int64](40); return o }
	for limits, c := range map[string]struct {
		timeout time.Duration
		tweak   func(*metav1.ListOptions)
	}{
		"of the config":  {time.Minute, nil},
		"of the options": {0, func(o *metav1.ListOptions) { *o = asked(*o) }},
		"of both":        {time.Minute, func(o *metav1.ListOptions) { *o = asked(*o) }},
		"of no watch":    {time.Minute, func(o *metav1.ListOptions) { o.TimeoutSeconds = nil }},
	} {
		cfg := s.config()
		cfg.Timeout = c.timeout
		typed := kubernetes.NewForConfigOrDie(cfg)
		untyped, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(cfg))
		if err != nil {
			t.Fatal(err)
		}
		anyOf := dynamic.New(untyped).Resource(podResource)
		metaOf := metadata.NewForConfigOrDie(cfg).Resource(podResource)
		core := typed.CoreV1().RESTClient().(*rest.RESTClient)
		for name, client := range map[string]struct {
			own   *rest.RESTClient
			reads Collection
			list  func(metav1.ListOptions) error
			watch func(metav1.ListOptions) (watch.Interface, error)
		}{
			"typed": {core, pods,
				func(o metav1.ListOptions) error { _, err := typed.CoreV1().Pods("").List(t.Context(), o); return err },
				func(o metav1.ListOptions) (watch.Interface, error) {
					return typed.CoreV1().Pods("").Watch(t.Context(), o)
				}},
			"dynamic": {untyped, anyPods,
				func(o metav1.ListOptions) error { _, err := anyOf.List(t.Context(), o); return err },
				func(o metav1.ListOptions) (watch.Interface, error) { return anyOf.Watch(t.Context(), o) }},
			"metadata": {core, podMetadata,
				func(o metav1.ListOptions) error { _, err := metaOf.List(t.Context(), o); return err },
				func(o metav1.ListOptions) (watch.Interface, error) { return metaOf.Watch(t.Context(), o) }},
		} {
			t.Run(name+" "+limits, func(t *testing.T) {
				s.requests = nil
				reads := client.reads
				reads.Tweak = c.tweak
				own, err := ClientOf(client.own)
				if err != nil {
					t.Fatal(err)
				}
				source, err := NewSource[any](own, reads, SourceOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := source.List(t.Context(), tarn.ListQuery{AtLeast: "7"}); err != nil {
					t.Fatal(err)
				}
				stream, err := source.Watch(t.Context(), tarn.WatchQuery{From: "7", Timeout: 400e9})
				if err != nil {
					t.Fatal(err)
				}
				stream.Close()
				options := reads.options(metav1.ListOptions{ResourceVersion: "7"}, false)
				if err := client.list(options); err != nil {
					t.Fatal(err)
				}
				w, err := client.watch(reads.options(metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](400)}, false))
				if err != nil {
					t.Fatal(err)
				}
				w.Stop()
				sent := s.seen(func(r *http.Request) string { return r.URL.RequestURI() })
				if diff := cmp.Diff(sent[2:], sent[:2]); diff != "" {
					t.Errorf("requests (-client-go +ours): %s", diff)
				}
			})
		}
	}
}

// A list whose options limit its time ends at that limit, as that of a typed client, although
// the server sends nothing.
func TestClientOfEndsLists(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	client, _ := clientOf(t, s.config())
	limited := pods
	limited.Tweak = func(o *metav1.ListOptions) { o.TimeoutSeconds = ptr.To[int64](1) }
	source, err := NewSource[*corev1.Pod](client, limited, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := source.List(ctx, tarn.ListQuery{}); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// The time limit of a list begins when the request is sent, as with a typed client. In a program
// with many informers the wait for the rate limit is longer than the time limit.
func TestClientOfWaitsBeforeItsTimeBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, clientset := clientOf(t, &rest.Config{Host: "http://server", QPS: 0.5, Burst: 1, Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"PodList","apiVersion":"v1","items":[]}`)),
			}, nil
		})})
		limited := pods
		limited.Tweak = func(o *metav1.ListOptions) { o.TimeoutSeconds = ptr.To[int64](1) }
		source, err := NewSource[*corev1.Pod](client, limited, SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clientset.CoreV1().Pods("").List(t.Context(), limited.options(metav1.ListOptions{}, false)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := source.List(t.Context(), tarn.ListQuery{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the second list took %v, and should have waited for 2s", took)
		}
	})
}

// The warning handler and the rate limit are those of the clientset.
func TestClientOfKeepsHandlers(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Warning", `299 - "pods are old"`)
		answer(w, jsonType, podList(t, jsonType, newPods(2), "9"))
	})
	cfg := s.config()
	heard, limit := &warnings{}, &limiter{}
	cfg.WarningHandler, cfg.RateLimiter = heard, limit
	client, _ := clientOf(t, cfg)
	source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if page, err := source.List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Items) != 2 {
		t.Fatal(len(page.Items), err)
	}
	if !slices.Equal(heard.texts, []string{"pods are old"}) || limit.waits.Load() != 1 {
		t.Errorf("warnings %q, %d waits", heard.texts, limit.waits.Load())
	}
	if got := client.Server(); got != s.URL {
		t.Errorf("server %q, want %q", got, s.URL)
	}
}

// Formats that cannot be read are not asked for. Clients that allow CBOR, by a feature
// gate of client-go, would ask for it.
func TestClientOfAcceptsNoCBOR(t *testing.T) {
	for accepted, want := range map[string]string{
		"application/cbor": jsonType,
		"application/cbor, application/vnd.kubernetes.protobuf,application/json": "application/vnd.kubernetes.protobuf,application/json",
		"application/json;q=0.9, application/vnd.kubernetes.protobuf;q=0.8":      "application/json;q=0.9, application/vnd.kubernetes.protobuf;q=0.8",
		"application/vnd.kubernetes.protobuf,application/cbor-seq,*/*":           "application/vnd.kubernetes.protobuf,*/*",
	} {
		var sent string
		transport := currentTransport{&rest.RESTClient{Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.Header.Get("Accept")
			return nil, io.EOF
		})}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accepted)
		if _, err := transport.RoundTrip(req); err != io.EOF {
			t.Fatal(err)
		}
		if sent != want || req.Header.Get("Accept") != accepted {
			t.Errorf("%q was sent as %q, want %q, and left as %q", accepted, sent, want, req.Header.Get("Accept"))
		}
	}
}

// A REST client without an HTTP client uses http.DefaultClient, as the program has set it up.
func TestClientOfTheDefaultClient(t *testing.T) {
	before := *http.DefaultClient
	t.Cleanup(func() { *http.DefaultClient = before })
	http.DefaultClient.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"kind":"PodList","apiVersion":"v1","items":[]}`))}, nil
	})
	clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://lake.invalid"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ClientOf(clientset.CoreV1().RESTClient().(*rest.RESTClient))
	if err != nil {
		t.Fatal(err)
	}
	source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.List(t.Context(), tarn.ListQuery{}); err != nil {
		t.Error(err)
	}
}

// A server that refuses the formats of the clientset is asked for JSON from then on.
func TestClientOfFallsBackToJSON(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != jsonType {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		answer(w, jsonType, podList(t, jsonType, newPods(1), "9"))
	})
	client, _ := clientOf(t, s.config())
	source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if page, err := source.List(context.Background(), tarn.ListQuery{}); err != nil || len(page.Items) != 1 {
			t.Fatal(len(page.Items), err)
		}
	}
	if got := len(s.requests); got != 3 {
		t.Errorf("%d requests, wanted one that is refused and two", got)
	}
}

func TestClientOfNothing(t *testing.T) {
	for _, own := range []*rest.RESTClient{nil, {}} {
		if _, err := ClientOf(own); err == nil {
			t.Errorf("the REST client %v was accepted", own)
		}
	}
}

// cookies are those of a program.
type cookies string

func (c cookies) SetCookies(*url.URL, []*http.Cookie) {}
func (c cookies) Cookies(*url.URL) []*http.Cookie {
	return []*http.Cookie{{Name: "session", Value: string(c)}}
}

// What a program changes at the HTTP client of its REST client holds for later requests, as it does
// for those of the REST client itself.
func TestClientOfFollowsItsClient(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "9" {
			<-r.Context().Done()
			return
		}
		if r.URL.Query().Get("limit") == "8" {
			http.Redirect(w, r, "/api/v1/pods", http.StatusFound)
			return
		}
		answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`))
	})
	client, clientset := clientOf(t, s.config())
	source, err := NewSource[any](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := clientset.CoreV1().RESTClient().(*rest.RESTClient)
	list := func(limit int64) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := source.List(ctx, tarn.ListQuery{AtLeast: "5", Limit: limit})
		return err
	}
	if err := list(8); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no redirects")
	for _, change := range []func(){
		func() {
			own.Client.Jar = cookies("first")
			own.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return refused }
		},
		func() {
			own.Client = &http.Client{
				Transport: own.Client.Transport, Jar: cookies("second"),
				CheckRedirect: func(*http.Request, []*http.Request) error { return refused },
			}
		},
	} {
		change()
		if err := list(3); err != nil {
			t.Fatal(err)
		}
		want := "session=" + string(own.Client.Jar.(cookies))
		if sent := s.seen(func(r *http.Request) string { return r.Header.Get("Cookie") }); sent[len(sent)-1] != want {
			t.Errorf("the cookies are %q, want %q", sent[len(sent)-1], want)
		}
		if err := list(8); !errors.Is(err, refused) {
			t.Errorf("a redirect that the program refuses: %v", err)
		}
		own.Client.Timeout = 50 * time.Millisecond
		began := time.Now()
		if err := list(9); err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("a request with a timeout of 50ms took %v: %v", time.Since(began), err)
		}
		own.Client.Timeout = 0
	}
}
