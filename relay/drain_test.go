package relay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A request that the origin is just answering is answered when the relay stops, also if
// there is no watch to wait for. One that takes longer than the drain time is cut off.
func TestDrainAwaitsRequests(t *testing.T) {
	for name, test := range map[string]struct {
		drain time.Duration
		// answers says that the origin answers while the relay drains.
		answers bool
		code    int
	}{"in time": {5 * time.Second, true, http.StatusTeapot}, "too late": {time.Millisecond, false, http.StatusServiceUnavailable}} {
		t.Run(name, func(t *testing.T) {
			asked, release := make(chan struct{}), make(chan struct{})
			slow := func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if req.Method != http.MethodPost {
					next.ServeHTTP(w, req)
					return
				}
				close(asked)
				<-release
				w.WriteHeader(http.StatusTeapot)
			}
			r := newRigThrough(t, slow, Options{DrainTime: test.drain})
			answer := make(chan int)
			go func() {
				response, err := http.Post(r.url+"/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader("{}"))
				if err != nil {
					answer <- 0
					return
				}
				_ = response.Body.Close()
				answer <- response.StatusCode
			}()
			<-asked
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				r.stop()
			}()
			<-r.relay.draining.Done()
			if test.answers {
				close(release)
			}
			if code := <-answer; code != test.code {
				t.Errorf("the answer is %d", code)
			}
			if !test.answers {
				close(release)
			}
			<-stopped
		})
	}
}

// newRigThrough has a handler stand before the origin.
func newRigThrough(t *testing.T, before func(w http.ResponseWriter, req *http.Request, next http.Handler), options Options) *rig {
	t.Helper()
	var front *httptest.Server
	r := newRigWith(t, Options{}, func(*rig) {})
	r.stop()
	front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { before(w, req, r.origin) }))
	t.Cleanup(front.Close)
	r.start(front.URL, options)
	return r
}
