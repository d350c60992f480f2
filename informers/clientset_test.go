package informers_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	upstream "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/internal/proxytest"
)

// clientset makes a clientset whose requests are recorded.
func clientset(t *testing.T, config *rest.Config, change func(*rest.Config)) (kubernetes.Interface, *proxytest.Recorder) {
	t.Helper()
	sent := &proxytest.Recorder{}
	config = rest.CopyConfig(config)
	config.WrapTransport = sent.Wrap
	change(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, sent
}

// The informers of a clientset send the requests that client-go's send, and hold what
// client-go's hold.
func TestClientsetSameAsStock(t *testing.T) {
	_, config := serve(t)
	for name, change := range map[string]func(*rest.Config){
		"as it is": func(*rest.Config) {},
		"JSON":     func(c *rest.Config) { c.ContentType = runtime.ContentTypeJSON },
		"protobuf": func(c *rest.Config) { c.ContentType = runtime.ContentTypeProtobuf },
		"either": func(c *rest.Config) {
			c.AcceptContentTypes = "application/json;q=0.5,application/vnd.kubernetes.protobuf"
		},
		"credentials": func(c *rest.Config) { c.UserAgent, c.Impersonate.UserName = "lake/1", "ops" },
		"no gzip":     func(c *rest.Config) { c.DisableCompression = true },
		"a timeout":   func(c *rest.Config) { c.Timeout = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			tweak := func(o *metav1.ListOptions) { o.LabelSelector = "app!=z" }
			type observation struct {
				Requests []string
				Objects  []metav1.Object
			}
			observe := func(factory upstream.SharedInformerFactory, sent *proxytest.Recorder) (seen observation) {
				all := []cache.SharedIndexInformer{factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()}
				started(t, factory)
				for _, informer := range all {
					for _, object := range informer.GetStore().List() {
						seen.Objects = append(seen.Objects, object.(metav1.Object))
					}
				}
				slices.SortFunc(seen.Objects, func(a, b metav1.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
				seen.Requests = sent.Requests()
				return seen
			}
			client, sent := clientset(t, config, change)
			stock := observe(upstream.NewSharedInformerFactoryWithOptions(client, 0, upstream.WithNamespace("north"), upstream.WithTweakListOptions(tweak)), sent)
			client, sent = clientset(t, config, change)
			ours := observe(informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("north"), informers.WithTweakListOptions(tweak)), sent)
			if diff := gocmp.Diff(stock, ours); diff != "" {
				t.Errorf("client-go and ours differ (-client-go +ours):\n%s", diff)
			}
			if len(stock.Objects) != 31 || len(stock.Requests) != 2 {
				t.Errorf("%d objects by %d requests, wanted 31 by 2", len(stock.Objects), len(stock.Requests))
			}
		})
	}
}

// Parts are shared by all factories of the process.
func TestClientsetShares(t *testing.T) {
	_, config := serve(t)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	north := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("north"))
	south := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("south"))
	inNorth, inSouth := north.Core().V1().Pods(), south.Core().V1().Pods()
	inNorth.Informer()
	inSouth.Informer()
	started(t, north)
	started(t, south)
	a, errA := inNorth.Lister().Pods("north").Get("a1")
	b, errB := inSouth.Lister().Pods("south").Get("b1")
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] {
		t.Error("equal containers of two factories are not the same")
	}
}

// own has methods of its own for pods. It embeds a clientset, as programs do to count or
// limit what is read.
type own struct {
	*kubernetes.Clientset
	reads *atomic.Int32
}

func (c own) CoreV1() typedcore.CoreV1Interface {
	c.reads.Add(1)
	return c.Clientset.CoreV1()
}

// The methods of a type that embeds a clientset are called.
func TestClientsetWithMethodsOfItsOwn(t *testing.T) {
	_, config := serve(t)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	reads := &atomic.Int32{}
	factory := informers.NewSharedInformerFactory(own{client, reads}, 0)
	pods := factory.Core().V1().Pods().Informer()
	started(t, factory)
	if got := len(pods.GetStore().List()); got != 60 || reads.Load() == 0 {
		t.Errorf("%d pods after %d calls of CoreV1", got, reads.Load())
	}
}

// A clientset that was made of a REST client has the path of that client, which may be any.
func TestClientsetWithAPathOfItsOwn(t *testing.T) {
	_, config := serve(t)
	var outside atomic.Int32
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return proxytest.Transport(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			path, inside := strings.CutPrefix(req.URL.Path, "/lakes/deep")
			if !inside {
				outside.Add(1)
			}
			req.URL.Path = path
			return next.RoundTrip(req)
		})
	}
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/lakes/deep/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(kubernetes.New(client), 0)
	pods := factory.Core().V1().Pods().Informer()
	started(t, factory)
	if got := len(pods.GetStore().List()); got != 60 || outside.Load() > 0 {
		t.Errorf("%d pods, and %d requests for another path", got, outside.Load())
	}
}

// If a transport is replaced later, the new one is used, as tests of programs expect.
func TestClientsetWithAnotherTransport(t *testing.T) {
	_, config := serve(t)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	reads := &proxytest.Recorder{}
	of := client.CoreV1().RESTClient().(*rest.RESTClient)
	replaced := *of.Client
	replaced.Transport = reads.Wrap(of.Client.Transport)
	of.Client = &replaced
	started(t, factory)
	if got := len(pods.GetStore().List()); got != 60 || len(reads.Requests()) == 0 {
		t.Errorf("%d pods by %d requests of the new transport", got, len(reads.Requests()))
	}
}

// A factory stops although a transport does not, such as a credential plugin that waits for a
// person to log in, or a transport of a test that ignores contexts.
func TestClientsetThatDoesNotStop(t *testing.T) {
	for name, answer := range map[string]func(release <-chan struct{}) *http.Response{
		"no answer": func(release <-chan struct{}) *http.Response {
			<-release
			return nil
		},
		"no end": func(release <-chan struct{}) *http.Response {
			body, end := io.Pipe()
			go func() {
				<-release
				end.Close()
			}()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(body)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			release, asked := make(chan struct{}), make(chan struct{}, 1)
			t.Cleanup(func() { close(release) })
			client, _ := clientset(t, &rest.Config{Host: "http://lake"}, func(c *rest.Config) {
				c.WrapTransport = func(http.RoundTripper) http.RoundTripper {
					return proxytest.Transport(func(*http.Request) (*http.Response, error) {
						asked <- struct{}{}
						return answer(release), nil
					})
				}
			})
			factory := informers.NewSharedInformerFactory(client, 0)
			factory.Core().V1().Pods().Informer()
			ctx, cancel := context.WithCancel(t.Context())
			factory.StartWithContext(ctx)
			<-asked
			cancel()
			stopped := make(chan struct{})
			go func() {
				factory.Shutdown()
				close(stopped)
			}()
			select {
			case <-stopped:
			case <-time.After(20 * time.Second):
				t.Error("Shutdown waits for the transport")
			}
		})
	}
}

// A transport that ends its goroutine, as t.Fatal does, does not end the process: the test fails
// with its own message.
func TestClientsetOfATransportThatFailsItsTest(t *testing.T) {
	asked := make(chan struct{})
	client, _ := clientset(t, &rest.Config{Host: "http://lake"}, func(c *rest.Config) {
		c.WrapTransport = func(http.RoundTripper) http.RoundTripper {
			return proxytest.Transport(func(*http.Request) (*http.Response, error) {
				asked <- struct{}{}
				goruntime.Goexit()
				return nil, nil
			})
		}
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	<-asked
	<-asked // a list, after the watch list
	cancel()
	factory.Shutdown()
}

// If panics do not end the process, a transport that panics does not end the informer.
func TestClientsetOfATransportThatPanics(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
	_, config := serve(t)
	var requests atomic.Int32
	client, _ := clientset(t, config, func(c *rest.Config) {
		c.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return proxytest.Transport(func(req *http.Request) (*http.Response, error) {
				if requests.Add(1) == 1 {
					panic("no credentials")
				}
				return next.RoundTrip(req)
			})
		}
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) || len(pods.GetStore().List()) != 60 {
		t.Errorf("the informer has %d pods after a panic", len(pods.GetStore().List()))
	}
	cancel()
	factory.Shutdown()
}

// bodyThatPanics panics at the first read that begins after the body was told to.
type bodyThatPanics struct {
	io.ReadCloser
	armed *atomic.Bool
}

func (b bodyThatPanics) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.armed.CompareAndSwap(true, false) {
		panic("no body")
	}
	return n, err
}

// If panics do not end the process, a watch whose body panics is opened again, and nothing is
// missing afterwards.
func TestClientsetOfABodyThatPanics(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
	server, config := serve(t)
	var armed atomic.Bool
	client, _ := clientset(t, config, func(c *rest.Config) {
		c.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return proxytest.Transport(func(req *http.Request) (*http.Response, error) {
				resp, err := next.RoundTrip(req)
				if err == nil {
					resp.Body = bodyThatPanics{resp.Body, &armed}
				}
				return resp, err
			})
		}
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	store := factory.Core().V1().Pods().Informer().GetStore()
	started(t, factory)
	armed.Store(true)
	if err := server.Put(pod("north", "lost")); err != nil { // the read that gets its event panics
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // real: the server is behind a socket
		if _, found, _ := store.GetByKey("north/lost"); found {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("the pod whose event was lost never arrived")
		}
	}
	if armed.Load() {
		t.Error("no read panicked")
	}
}

// An empty clientset is an error when it is used, not before.
func TestClientsetThatIsNil(t *testing.T) {
	for name, client := range map[string]kubernetes.Interface{
		"nil":             (*kubernetes.Clientset)(nil),
		"zero":            &kubernetes.Clientset{},
		"of nothing":      kubernetes.New(nil),
		"of a nil client": kubernetes.New((*rest.RESTClient)(nil)),
		"of a zero one":   kubernetes.New(&rest.RESTClient{}),
	} {
		t.Run(name, func(t *testing.T) {
			factory := informers.NewSharedInformerFactory(client, 0)
			if err := factory.Core().V1().Pods().Informer().GetIndexer().Add(pod("north", "a")); err != nil {
				t.Fatal(err)
			}
			if _, err := factory.Core().V1().Pods().Lister().Pods("north").Get("a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// An object that cannot be decoded is one bad object, although client-go's decoder ends the
// watch for it.
func TestClientsetWithABadObject(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		for _, event := range []string{
			`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"good","namespace":"north","resourceVersion":"3"}}}`,
			`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"bad","namespace":"north","resourceVersion":"4"},"spec":"text"}}`,
			`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
		} {
			fmt.Fprintln(w, event)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	started(t, factory)
	if keys := pods.GetStore().ListKeys(); !slices.Equal(keys, []string{"north/good"}) {
		t.Errorf("the informer holds %q", keys)
	}
	replica, _ := cache.ReplicaOf(pods)
	if health := replica.Health(); health.BadCount != 1 {
		t.Errorf("%d bad objects: %+v", health.BadCount, health)
	}
}
