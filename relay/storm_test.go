package relay

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
)

// slowOrigin does not answer requests for objects until it is released.
type slowOrigin struct {
	http.RoundTripper
	released chan struct{}
	// reads are requests for the whole collection.
	reads atomic.Int64
}

func (o *slowOrigin) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if strings.HasSuffix(r.URL.Path, "/pods") {
		if query.Get("limit") != "1" && (query.Get("watch") == "" || query.Get("sendInitialEvents") != "") {
			o.reads.Add(1)
		}
		select {
		case <-o.released:
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	return o.RoundTripper.RoundTrip(r)
}

// A thousand clients that connect while a relay starts wait, or are asked to retry, and all
// are served in the end. The origin is asked once.
func TestConnectStormAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, objects = 1000, 5
		origin := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer origin.Close()
		for i := range objects {
			if err := origin.Put(pod(fmt.Sprint("p", i), "a")); err != nil {
				t.Fatal(err)
			}
		}
		slow := &slowOrigin{released: make(chan struct{})}
		config := origin.Config()
		config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			slow.RoundTripper = next
			return slow
		}
		r, err := New(Options{Config: config, Resources: []schema.GroupVersionResource{pods}, Gate: Everybody{}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		var refused, served, wrong atomic.Int64
		for range clients {
			running.Go(func() {
				for {
					request := httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1", nil)
					answer := httptest.NewRecorder()
					r.ServeHTTP(answer, request)
					body, _ := io.ReadAll(answer.Body)
					switch {
					case answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") != "":
						refused.Add(1)
						time.Sleep(time.Second)
					case answer.Code == http.StatusOK && strings.Count(string(body), `"ADDED"`) == objects:
						served.Add(1)
						return
					default:
						wrong.Add(1)
						return
					}
				}
			})
		}
		time.Sleep(10 * time.Second)
		if served.Load() != 0 || refused.Load() < clients {
			t.Errorf("before the copy was there, %d were served and %d told to come again", served.Load(), refused.Load())
		}
		close(slow.released)
		time.Sleep(20 * time.Second)
		if served.Load() != clients || wrong.Load() != 0 {
			t.Errorf("%d of %d were served, %d were answered wrongly", served.Load(), clients, wrong.Load())
		}
		if reads := slow.reads.Load(); reads != 1 {
			t.Errorf("the origin was asked for everything %d times", reads)
		}
		cancel()
		running.Wait()
	})
}
