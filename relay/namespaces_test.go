package relay

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A relay of some namespaces answers for these, refuses requests across all, and leaves
// others to the origin. What has no namespace is served as ever.
func TestNamespaces(t *testing.T) {
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	r := newRigWith(t, Options{Namespaces: []string{"a", "b"}, Resources: []schema.GroupVersionResource{pods, nodes}}, func(r *rig) {
		for _, namespace := range []string{"a", "b", "c"} {
			p := pod("in-"+namespace, "1")
			p.Namespace = namespace
			r.put(p)
		}
	})
	r.requests()
	for path, want := range map[string]string{
		"/api/v1/namespaces/a/pods?resourceVersion=0":      "in-a",
		"/api/v1/namespaces/b/pods/in-b?resourceVersion=0": "in-b",
		"/api/v1/nodes?resourceVersion=0":                  "NodeList",
	} {
		if code, body := r.read(path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/api/v1/pods?resourceVersion=0", "/api/v1/pods?watch=1"} {
		if code, body := r.read(path); code != http.StatusForbidden || !strings.Contains(body, `the namespaces [\"a\" \"b\"] only`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if asked := r.requests(); len(asked) > 0 {
		t.Errorf("the origin was asked %q", asked)
	}
	if code, body := r.read("/api/v1/namespaces/c/pods?resourceVersion=0"); code != http.StatusOK || !strings.Contains(body, "in-c") {
		t.Errorf("%d %s", code, body)
	}
	if !slices.Contains(r.requests(), "GET /api/v1/namespaces/c/pods?resourceVersion=0") {
		t.Error("another namespace was not asked of the origin")
	}
	if stats := r.relay.Stats(); len(stats) != 3 || stats[1].Namespace != "b" || stats[1].Objects != 1 {
		t.Errorf("%+v", stats)
	}
}

// Only callers that are known learn which namespaces a relay has copies of. The origin decides
// about those without credentials.
func TestNamespacesAreForKnownCallers(t *testing.T) {
	j := &judge{users: map[string]string{"t1": "ann"}}
	r := newRigWith(t, Options{Namespaces: []string{"secret"}, Gate: j.gate()}, func(*rig) {})
	for _, path := range []string{"/api/v1/pods?resourceVersion=0", "/api/v1/pods?watch=1&timeoutSeconds=1"} {
		if code, body := r.read(path, "Authorization", "Bearer invented"); code != http.StatusUnauthorized || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if code, body := r.read(path, "Authorization", "Bearer t1"); code != http.StatusForbidden || !strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", path, code, body)
		}
		r.requests()
		if _, body := r.read(path); strings.Contains(body, "secret") || !slices.Contains(r.requests(), "GET "+path) {
			t.Errorf("%s without a token was not for the origin: %s", path, body)
		}
	}
	if refused := r.relay.Health().Refused; refused["unauthorized"] != 2 || refused["forbidden"] != 2 {
		t.Errorf("%v", refused)
	}
}
