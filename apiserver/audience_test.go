package apiserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// audience is many watchers of pods on loopback, each on a connection of its own.
type audience struct {
	t      testing.TB
	server *Server
	seen   []atomic.Int64 // events, by watcher
	lost   atomic.Pointer[error]
	pod    *corev1.Pod
}

// newAudience seats the watchers. Pods get an annotation of so many bytes.
func newAudience(t testing.TB, watchers, padding int) *audience {
	t.Helper()
	server, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	a := &audience{t: t, server: server, seen: make([]atomic.Int64, watchers), pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"padding": strings.Repeat("x", padding)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}}
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{MaxIdleConns: -1}
	var readers sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		readers.Wait()
		transport.CloseIdleConnections()
	})
	for i := range watchers {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+"/api/v1/pods?watch=1&resourceVersion="+server.Version(), nil)
		request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			defer response.Body.Close()
			if err := countFrames(response.Body, &a.seen[i]); ctx.Err() == nil {
				a.lost.Store(&err)
			}
		})
	}
	return a
}

// write makes the event number n.
func (a *audience) write(n int) {
	a.t.Helper()
	a.pod.Labels = map[string]string{"n": fmt.Sprint(n)}
	if err := a.server.Put(a.pod); err != nil {
		a.t.Fatal(err)
	}
}

// slowest says how many events everybody has seen. It fails the test if somebody
// was closed.
func (a *audience) slowest() int {
	a.t.Helper()
	if err := a.lost.Load(); err != nil {
		a.t.Fatalf("a watcher was closed: %v", *err)
	}
	least := a.seen[0].Load()
	for i := range a.seen {
		least = min(least, a.seen[i].Load())
	}
	return int(least)
}

// countFrames reads events of a watch in protobuf, and nothing of what is in
// them.
func countFrames(from io.Reader, seen *atomic.Int64) error {
	reader := bufio.NewReaderSize(from, 32<<10)
	var head [4]byte
	for {
		if _, err := io.ReadFull(reader, head[:]); err != nil {
			return err
		}
		if _, err := reader.Discard(int(binary.BigEndian.Uint32(head[:]))); err != nil {
			return err
		}
		seen.Add(1)
	}
}
