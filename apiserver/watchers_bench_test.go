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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkWatchers is the load test: many watchers on loopback, each on a
// connection of its own, all of which must see every event. An operation is one
// write; what counts is deliveries/s. Writing waits for the slowest watcher when
// it is a thousand events behind, so none is ever closed.
//
//	go test -run - -bench Watchers -benchtime 2000x ./apiserver
func BenchmarkWatchers(b *testing.B) {
	for _, size := range []int{0, 8 << 10} {
		for _, watchers := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("watchers=%d/padding=%d", watchers, size), func(b *testing.B) { benchmarkWatchers(b, watchers, size) })
		}
	}
}

func benchmarkWatchers(b *testing.B, watchers, padding int) {
	server, err := Start(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	seen := make([]atomic.Int64, watchers)
	var lost atomic.Pointer[error]
	transport := &http.Transport{MaxIdleConns: -1}
	defer transport.CloseIdleConnections()
	for i := range watchers {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+"/api/v1/pods?watch=1&resourceVersion="+server.Version(), nil)
		request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
		response, err := transport.RoundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		readers.Go(func() {
			defer response.Body.Close()
			err := countFrames(response.Body, &seen[i])
			if ctx.Err() == nil {
				lost.Store(&err)
			}
		})
	}
	slowest := func() int64 {
		if err := lost.Load(); err != nil {
			b.Fatalf("a watcher was closed: %v", *err)
		}
		least := seen[0].Load()
		for i := range seen {
			least = min(least, seen[i].Load())
		}
		return least
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"padding": strings.Repeat("x", padding)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	b.ResetTimer()
	for i := range b.N {
		pod.Labels = map[string]string{"n": fmt.Sprint(i)}
		if err := server.Put(pod); err != nil {
			b.Fatal(err)
		}
		for i%100 == 0 && int64(i)-slowest() > 1000 {
			time.Sleep(time.Millisecond)
		}
	}
	for slowest() < int64(b.N) {
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "deliveries/s")
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

// BenchmarkNew is what a test pays for a server of its own.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		server := New(Options{})
		server.Close()
	}
}
