package relay

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
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
