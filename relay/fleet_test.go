package relay

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
)

// fleetRig is a fleet that listens, and the origins of its clusters.
type fleetRig struct {
	*testing.T
	fleet *Fleet
	url   string
}

func newFleetRig(t *testing.T) *fleetRig {
	t.Helper()
	f := &fleetRig{T: t, fleet: NewFleet()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.fleet.Run(ctx)
	}()
	server := httptest.NewServer(f.fleet)
	f.url = server.URL
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	t.Cleanup(func() {
		cancel()
		<-ended
		server.Close()
	})
	return f
}

// origin starts a server with some pods.
func (f *fleetRig) origin(pods ...string) *apiserver.Server {
	f.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(server.Close)
	for _, name := range pods {
		if err := server.Put(pod(name, "")); err != nil {
			f.Fatal(err)
		}
	}
	return server
}

func (f *fleetRig) add(name string, origin *apiserver.Server) {
	f.Helper()
	r, err := New(Options{
		Config: origin.Config(), Resources: []schema.GroupVersionResource{pods}, Gate: Everybody{},
		DrainTime: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = f.fleet.Add(name, r)
	}
	if err == nil {
		err = r.WaitSynced(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fleetRig) client(cluster string) kubernetes.Interface {
	f.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: f.url + "/clusters/" + cluster, QPS: -1})
	if err != nil {
		f.Fatal(err)
	}
	return client
}

func (f *fleetRig) get(path string) (status int, body string) {
	f.Helper()
	resp, err := http.Get(f.url + path)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		f.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// Each cluster is read, watched and written at its own path, with its own versions.
func TestFleet(t *testing.T) {
	f := newFleetRig(t)
	if status, _ := f.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("%d without a cluster", status)
	}
	east, west := f.origin("a", "b", "same"), f.origin("same")
	f.add("east", east)
	f.add("west:1 2", west)
	for cluster, origin := range map[string]*apiserver.Server{"east": east, "west:1%202": west} {
		client := f.client(cluster).CoreV1().Pods("default")
		list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"east": 3, "west:1%202": 1}[cluster]; len(list.Items) != want || list.ResourceVersion != origin.Version() {
			t.Errorf("%s has %d pods at %s, want %d at %s", cluster, len(list.Items), list.ResourceVersion, want, origin.Version())
		}
		watch, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		made, err := client.Create(t.Context(), pod("new", ""), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if event := <-watch.ResultChan(); event.Object.(*corev1.Pod).ResourceVersion != made.ResourceVersion {
			t.Errorf("%s: the watch tells %v, and %s was written", cluster, event.Object, made.ResourceVersion)
		}
		watch.Stop()
	}
	if status, body := f.get("/clusters"); status != http.StatusOK || strings.TrimSpace(body) != `{"clusters":[{"name":"east","ready":true},{"name":"west:1 2","ready":true}]}` {
		t.Errorf("%d %s", status, body)
	}
	for _, path := range []string{"/readyz", "/livez", "/clusters/east/readyz"} {
		if status, body := f.get(path); status != http.StatusOK || body != "ok" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, err := f.client("nowhere").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `no cluster "nowhere"; its clusters are east, west:1 2`) {
		t.Errorf("an unknown cluster: %v", err)
	}
	if status, body := f.get("/api/v1/pods"); status != http.StatusNotFound || !strings.Contains(body, `"kind":"Status"`) || !strings.Contains(body, "/clusters/NAME") {
		t.Errorf("without a cluster: %d %s", status, body)
	}
}

// A cluster that goes ends its own watches, and those of others continue.
func TestFleetComesAndGoes(t *testing.T) {
	f := newFleetRig(t)
	east, west := f.origin("a"), f.origin("a")
	f.add("east", east)
	f.add("west", west)
	if err := f.fleet.Add("west", nil); err == nil {
		t.Error("two clusters of one name")
	}
	watch := func(cluster string, from string) <-chan any {
		w, err := f.client(cluster).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: from})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		out := make(chan any)
		go func() {
			defer close(out)
			for e := range w.ResultChan() {
				if e.Type != "BOOKMARK" && e.Type != "ERROR" {
					out <- e.Object
				}
			}
		}()
		return out
	}
	here, gone := watch("east", east.Version()), watch("west", west.Version())
	if err := f.fleet.Remove("west"); err != nil {
		t.Fatal(err)
	}
	if event, open := <-gone; open {
		t.Errorf("the watch of a cluster that is gone tells %v", event)
	}
	if err := east.Put(pod("later", "")); err != nil {
		t.Fatal(err)
	}
	if event, open := <-here; !open || event.(*corev1.Pod).Name != "later" {
		t.Errorf("the other watch tells %v", event)
	}
	if status, _ := f.get("/clusters/west/api/v1/pods"); status != http.StatusNotFound {
		t.Errorf("%d from a cluster that is gone", status)
	}
	if f.fleet.Remove("west") == nil {
		t.Error("a cluster was removed twice")
	}
	f.add("west", west)
	if list, err := f.client("west").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil || len(list.Items) != 1 {
		t.Errorf("after it came back: %v", err)
	}
}

// A relay that is removed from a fleet before it runs ends too: its directory can be used by
// another one, and it does not start later without it.
func TestFleetRemovesARelayThatDoesNotRun(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close the file some time
	options := Options{
		Config: &rest.Config{Host: "https://127.0.0.1:1"}, Resources: []schema.GroupVersionResource{pods},
		Gate: Everybody{}, Directory: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	}
	fleet := NewFleet()
	addAndRemove := func() *Relay {
		t.Helper()
		r, err := New(options)
		if err == nil {
			err = fleet.Add("east", r)
		}
		if err == nil {
			err = fleet.Remove("east")
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := addAndRemove()
	addAndRemove()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := first.Run(ctx); !errors.Is(err, errClosed) {
		t.Errorf("a removed relay ran: %v", err)
	}
}
