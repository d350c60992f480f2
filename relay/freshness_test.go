package relay

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ages add up over relays, and none is ready whose sum is too large.
func TestFreshnessOverHops(t *testing.T) {
	first := newRig(t, Options{})
	first.settle()
	second := &rig{t: t, origin: first.origin}
	second.start(first.url, Options{})
	third := &rig{t: t, origin: first.origin}
	third.start(second.url, Options{})
	if first.relay.upstream.isRelay() || !second.relay.upstream.isRelay() || !third.relay.upstream.isRelay() {
		t.Fatal("a relay does not know what its origin is")
	}
	if age, ok := third.relay.Freshness(); !ok || age > time.Minute {
		t.Errorf("%v, %v", age, ok)
	}
	if err := third.relay.Ready(); err != nil {
		t.Error(err)
	}
	const old = 10 * time.Minute
	first.relay.upstream.note(http.Header{ageHeader: {fmt.Sprint(old.Milliseconds())}})
	second.relay.upstream.ask(t.Context())
	third.relay.upstream.ask(t.Context())
	for i, r := range []*rig{first, second, third} {
		if age, ok := r.relay.Freshness(); !ok || age < old || age > old+time.Minute {
			t.Errorf("relay %d: %v, %v", i+1, age, ok)
		}
		answer, err := http.Get(r.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if told, err := strconv.Atoi(answer.Header.Get(ageHeader)); err != nil || time.Duration(told)*time.Millisecond < old || answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("relay %d: %d %q", i+1, answer.StatusCode, answer.Header)
		}
	}
	if code, body := third.read("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "its own copy is 10m") {
		t.Errorf("%d %s", code, body)
	}
	// What one relay passes on does not tell the age of another.
	answer, err := http.Get(third.url + "/api/v1/nodes")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if told := answer.Header.Values(ageHeader); len(told) != 0 {
		t.Errorf("%q", told)
	}
}

// An age that could not be asked for grows.
func TestFreshnessUnanswered(t *testing.T) {
	u := &upstreamAge{every: time.Second}
	if u.now() != 0 {
		t.Error("an API server has an age")
	}
	u.note(http.Header{ageHeader: {"5000"}})
	u.told = u.told.Add(-time.Hour)
	if age := u.now(); age < time.Hour || age > time.Hour+10*time.Second {
		t.Errorf("%v", age)
	}
}

// An origin that was a relay, and is an API server now, has no age: a relay of several
// endpoints continues with the API server when its first origin is gone. A relay that has read
// nothing yet is no API server.
func TestFreshnessOfAnotherOrigin(t *testing.T) {
	first := newRig(t, Options{})
	first.settle()
	var origin atomic.Pointer[http.Handler]
	become := func(h http.Handler) { origin.Store(&h) }
	become(first.relay)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { (*origin.Load()).ServeHTTP(w, req) }))
	t.Cleanup(front.Close)
	second := &rig{t: t, origin: first.origin}
	second.start(front.URL, Options{})
	const silent = time.Hour
	ask := func() time.Duration {
		u := second.relay.upstream
		u.mu.Lock()
		u.told = time.Now().Add(-silent)
		u.mu.Unlock()
		u.ask(t.Context())
		return u.now()
	}
	if age := ask(); age > time.Minute || !second.relay.upstream.isRelay() {
		t.Errorf("behind a relay: %v", age)
	}
	become(first.origin)
	if age := ask(); age != 0 {
		t.Errorf("behind an API server: %v", age)
	}
	if err := second.relay.Ready(); err != nil {
		t.Error(err)
	}
	if !second.relay.upstream.isRelay() {
		t.Error("it would not notice that the relay is back")
	}
	unread, err := New(Options{Config: second.config(), Resources: []schema.GroupVersionResource{pods}, Gate: Everybody{}})
	if err != nil {
		t.Fatal(err)
	}
	become(unread)
	if age := ask(); age < silent/2 {
		t.Errorf("behind a relay that has read nothing: %v", age)
	}
	become(http.NotFoundHandler())
	if age := ask(); age < silent/2 {
		t.Errorf("behind something else: %v", age)
	}
	become(first.relay)
	if age := ask(); age > time.Minute {
		t.Errorf("behind a relay again: %v", age)
	}
}

// TestShortFreshness has a bound so short that an eighth of it is nothing.
func TestShortFreshness(t *testing.T) {
	newRig(t, Options{FreshWithin: 7})
}
