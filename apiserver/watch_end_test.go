package apiserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// A watcher that has fallen out of the history is closed, without an error, so that
// it watches again from where it stopped.
func TestSlowWatcherIsClosed(t *testing.T) {
	inBubble(t, Options{HistorySize: 10}, func(t *testing.T, server *Server) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/configmaps?watch=1&resourceVersion="+server.Version(), nil)
		response := must[*http.Response](t)(server.transport().RoundTrip(request))
		defer response.Body.Close()
		for i := range 100 {
			if err := server.Put(configMapNamed(fmt.Sprint("c", i), nil)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the first is being written to a client that does not read
		}
		lines := 0
		reader := bufio.NewReader(response.Body)
		for {
			if _, err := reader.ReadString('\n'); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			lines++
		}
		if lines != 1 {
			t.Errorf("%d events were told, want the one that was under way", lines)
		}
	})
}

// A client that has stopped reading is disconnected although its connection is up.
func TestStuckWatcherIsClosed(t *testing.T) {
	server := New(Options{WriteTimeout: 10 * time.Millisecond, HistorySize: 100_000})
	defer server.Close()
	ended := make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		server.ServeHTTP(w, r)
	}))
	defer front.Close()
	connection := must[net.Conn](t)(net.Dial("tcp", front.Listener.Addr().String()))
	defer connection.Close()
	fmt.Fprintf(connection, "GET /api/v1/configmaps?watch=1&resourceVersion=%s HTTP/1.1\r\nHost: x\r\n\r\n", server.Version())
	object := configMapNamed("c", nil)
	object.Data["k"] = strings.Repeat("x", 1<<20)
	for i := range 64 { // far more than any socket takes
		object.Data["n"] = fmt.Sprint(i)
		if err := server.Put(object); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the watch is still being served")
	}
}

// A watch that is silent for longer than a client may take to read continues, over
// HTTP/1.1 and over HTTP/2.
func TestQuietWatchGoesOn(t *testing.T) {
	for name, tls := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			server, err := Start(Options{TLS: tls, WriteTimeout: 20 * time.Millisecond, BookmarkInterval: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			config := server.Config()
			defer closeIdle(t, config)
			stream := must[watch.Interface](t)(kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{
				ResourceVersion: server.Version(), AllowWatchBookmarks: true,
			}))
			defer stream.Stop()
			for range 2 {
				if event, more := <-stream.ResultChan(); !more || event.Type != watch.Bookmark {
					t.Fatalf("instead of a bookmark: %v, %v", event, more)
				}
			}
		})
	}
}

// Closing the server ends the watches that it serves.
func TestCloseEndsWatches(t *testing.T) {
	for name, start := range map[string]func() (*Server, error){
		"in process": func() (*Server, error) { return New(Options{}), nil },
		"on a port":  func() (*Server, error) { return Start(Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			server, err := start()
			if err != nil {
				t.Fatal(err)
			}
			config := server.Config()
			stream := must[watch.Interface](t)(kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{}))
			server.Close()
			for range stream.ResultChan() {
			}
			if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err == nil {
				t.Error("a closed server answers")
			}
		})
	}
}

// Watchers of a removed resource get the deletes of its last objects first, even if
// both happen before they read.
func TestVanishedResourceIsTold(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	client := dynamic.NewForConfigOrDie(server.Config()).Resource(widgets)
	for range 600 { // a matter of luck
		if err := server.Register(widgetKind); err != nil {
			t.Fatal(err)
		}
		stream := must[watch.Interface](t)(client.Watch(t.Context(), metav1.ListOptions{}))
		if err := server.Put(customNamed(widgetKind, "w")); err != nil {
			t.Fatal(err)
		}
		if err := server.Delete(widgetKind.definition()); err != nil {
			t.Fatal(err)
		}
		var told []string
		for event := range stream.ResultChan() {
			told = append(told, string(event.Type))
		}
		if got := strings.Join(told, " "); got != "ADDED DELETED" {
			t.Fatalf("told %s", got)
		}
	}
}

// A timeout of zero means no timeout, as on a real server. A client would open a watch that
// ends at once again and again.
func TestWatchWithoutATimeout(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(server.Config()))
		var none int64
		open := must[watch.Interface](t)(client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: server.Version(), TimeoutSeconds: &none}))
		defer open.Stop()
		time.Sleep(20 * time.Minute)
		if err := server.Put(configMapNamed("late", nil)); err != nil {
			t.Fatal(err)
		}
		if e, ok := <-open.ResultChan(); !ok || e.Type != watch.Added {
			t.Errorf("%v %v", e, ok)
		}
	})
}
