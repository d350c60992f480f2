package relay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
)

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// rig is an origin that listens, with a relay in front of it.
type rig struct {
	t      *testing.T
	origin *apiserver.Server
	relay  *Relay
	url    string
	// asked are the requests that the origin got, as "verb path?query".
	mu    sync.Mutex
	asked []string
	stop  func()
}

func newRig(t *testing.T, options Options) *rig {
	t.Helper()
	return newRigWith(t, options, func(*rig) {})
}

// newRigWith prepares the origin before the relay begins.
func newRigWith(t *testing.T, options Options, prepare func(r *rig)) *rig {
	t.Helper()
	r := &rig{t: t, origin: apiserver.New(apiserver.Options{AnyNamespace: true})}
	t.Cleanup(r.origin.Close)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, req.Method+" "+req.URL.String())
		r.mu.Unlock()
		r.origin.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	prepare(r)
	r.start(front.URL, options)
	return r
}

func (r *rig) start(origin string, options Options) {
	r.t.Helper()
	options.Config = &rest.Config{Host: origin, BearerToken: "relay", QPS: -1}
	if options.Resources == nil {
		options.Resources = []schema.GroupVersionResource{pods}
	}
	if options.Gate == nil {
		options.Gate = Everybody{}
	}
	options.DrainTime = cmp.Or(options.DrainTime, 50*time.Millisecond)
	options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	relay, err := New(options)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = relay.Run(ctx)
	}()
	server := httptest.NewServer(relay)
	r.relay, r.url = relay, server.URL
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		server.Close()
	})
	r.t.Cleanup(r.stop)
	r.t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	waiting, done := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer done()
	if err := relay.WaitSynced(waiting); err != nil {
		r.t.Fatal(err)
	}
}

// requests returns what the origin was asked since the last call.
func (r *rig) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func (r *rig) config() *rest.Config {
	return &rest.Config{Host: r.url, BearerToken: "somebody", QPS: -1}
}

func (r *rig) client() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(r.config())
	if err != nil {
		r.t.Fatal(err)
	}
	return client
}

func (r *rig) put(objects ...runtime.Object) {
	r.t.Helper()
	if err := r.origin.Put(objects...); err != nil {
		r.t.Fatal(err)
	}
}

// settle waits until the copy of pods has everything that was written to them.
func (r *rig) settle() {
	r.t.Helper()
	r.put(pod("settle", fmt.Sprint(time.Now().UnixNano())))
	version := versionOf(tarnVersion(r.origin.Version()))
	if _, current := r.copy(pods, "").state.await(r.t.Context(), version, 10*time.Second); current < version {
		r.t.Fatalf("the copy is at %d, not at %d", current, version)
	}
}

func pod(name, label string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"l": label}},
		Spec:       corev1.PodSpec{NodeName: "node-" + label, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// read makes a request of the relay.
func (r *rig) read(path string, header ...string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func (r *rig) copy(resource schema.GroupVersionResource, namespace string) *copied {
	return (*r.relay.served[resource].copies.Load())[namespace]
}
