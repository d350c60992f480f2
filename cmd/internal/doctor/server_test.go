package doctor

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
)

// Versions are compared by their minor numbers.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		server, clientGo string
		want             Status
		word             string
	}{
		{"v1.36.3", "v0.37.2", OK, "supported"},
		{"v1.31.0", "v0.37.2", OK, "supported"},
		{"v1.38.0-beta.1", "v0.37.2", OK, "supported"},
		{"v1.36.3-eks-1234", "v0.37.2", OK, "supported"},
		{"v1.30.9", "v0.37.2", Warn, "before 1.31"},
		{"v1.39.0", "v0.37.2", Warn, "more than one minor version ahead"},
		{"v1.36.3", "", OK, "unknown version"},
		{"v2.1.0", "v0.37.2", Warn, "v2.1.0"},
		{"v1", "v0.37.2", Warn, `"v1"`},
		{"", "v0.37.2", Warn, `""`},
	} {
		a := &versionAnswer{code: http.StatusOK, info: apiversion.Info{GitVersion: c.server}}
		if got := a.skew(nil, c.clientGo); got.Status != c.want || !strings.Contains(got.Found, c.word) {
			t.Errorf("server %q and client-go %q: %+v, want %s with %q", c.server, c.clientGo, got, c.want, c.word)
		}
	}
	for code, want := range map[int]Status{http.StatusForbidden: Skip, http.StatusUnauthorized: Skip, http.StatusNotFound: Fail} {
		if got := (&versionAnswer{code: code}).skew(nil, "v0.37.2"); got.Status != want {
			t.Errorf("an answer of %d: %+v, want %s", code, got, want)
		}
	}
}

// The server's time has whole seconds, and half of the round trip is over when the server
// sends it.
func TestClock(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for off, want := range map[time.Duration]Status{
		0: OK, 2 * time.Second: OK, -3 * time.Second: OK, 5 * time.Second: Warn, -5 * time.Second: Warn, 24 * time.Hour: Warn,
	} {
		a := &versionAnswer{date: now.Add(off), asked: now, answered: now.Add(time.Second)}
		if got := a.clock(nil); got.Status != want {
			t.Errorf("off by %s: %+v, want %s", off, got, want)
		}
	}
	if got := (&versionAnswer{}).clock(errors.New("reset")); got.Status != Skip || !strings.Contains(got.Found, "reset") {
		t.Errorf("without an answer: %+v", got)
	}
}

// A check is skipped with the name of the one that failed first.
func TestPreconditions(t *testing.T) {
	var all []Result
	d := New(time.Second, func(r Result) { all = append(all, r) })
	d.Check(t.Context(), "a", nil, returning(fail("", "broken")))
	d.Check(t.Context(), "b", []string{"a"}, returning(ok("fine")))
	d.Check(t.Context(), "c", []string{"b"}, returning(ok("fine")))
	d.Check(t.Context(), "d", nil, returning(skip("not for us")))
	d.Check(t.Context(), "e", []string{"d"}, returning(warn("", "so so")))
	d.Check(t.Context(), "f", []string{"e"}, returning(ok("fine")))
	want := "fail broken, skip a failed, skip a failed, skip not for us, warn so so, ok fine"
	var got []string
	for _, r := range all {
		got = append(got, string(r.Status)+" "+r.Found)
	}
	if text := strings.Join(got, ", "); text != want || !d.Failed() {
		t.Errorf("got %s, want %s", text, want)
	}
}

func returning(r Result) func(context.Context) Result {
	return func(context.Context) Result { return r }
}
