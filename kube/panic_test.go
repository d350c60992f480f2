package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/proxytest"
)

// breakingBody reads a body until it has sent one event, and then fails as it is set to.
type breakingBody struct {
	io.ReadCloser
	size  int
	read  func()
	close func()
}

func (b *breakingBody) Read(p []byte) (int, error) {
	if b.size == 0 {
		b.read()
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.size)])
	b.size -= n
	return n, err
}

func (b *breakingBody) Close() error {
	b.ReadCloser.Close()
	b.close()
	return nil
}

// A body that panics goes to utilruntime's handlers, as with client-go, and ends the watch with the
// error of a lost connection, so that it is opened again. What arrived before is not lost.
func TestWatchOfABodyThatPanics(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash = false
	var panics atomic.Int32
	utilruntime.PanicHandlers = []func(context.Context, any){func(context.Context, any) { panics.Add(1) }}
	one := event(t, jsonType, "ADDED", newPod(1))
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write(one)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for name, c := range map[string]struct {
		read, close func()
		want        string
		panics      int32
	}{
		"a read that panics":                                      {func() { panic("torn") }, func() {}, "the watch of pods: the transport panicked: torn", 1},
		"a read that ends its goroutine":                          {runtime.Goexit, func() {}, "the watch of pods: the transport ended its goroutine", 0},
		"a read and a close that panic":                           {func() { panic("torn") }, func() { panic("stuck") }, "the transport panicked: torn", 2},
		"a read that ends its goroutine, and a close that panics": {runtime.Goexit, func() { panic("stuck") }, "ended its goroutine", 1},
	} {
		t.Run(name, func(t *testing.T) {
			panics.Store(0)
			transport := proxytest.Transport(func(req *http.Request) (*http.Response, error) {
				resp, err := s.Client().Transport.RoundTrip(req)
				if err == nil {
					resp.Body = &breakingBody{resp.Body, len(one), c.read, c.close}
				}
				return resp, err
			})
			client, err := NewClient(s.config(), WithHTTPClient(&http.Client{Transport: transport}))
			if err != nil {
				t.Fatal(err)
			}
			source, err := NewSource[any](client, pods, SourceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			stream, err := source.Watch(ctx, tarn.WatchQuery{From: "5", Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]tarn.Event[any], 10)
			if n, err := stream.Next(ctx, buf); n != 1 || err != nil {
				t.Errorf("%d events, %v", n, err)
			}
			_, err = stream.Next(ctx, buf)
			if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.want) || tarn.ReasonOf(err) != tarn.ReasonLost {
				t.Errorf("the watch ends with %v, want %q", err, c.want)
			}
			stream.Close()
			if n := panics.Load(); n != c.panics {
				t.Errorf("%d panics were handled, want %d", n, c.panics)
			}
		})
	}
}
