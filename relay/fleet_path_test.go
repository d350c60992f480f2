package relay

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Clusters behind one address, as a management server has them, differ in the path. A request
// for one of them reaches no other, however its path is written.
func TestPathsStayInTheirCluster(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.EscapedPath())
		w.WriteHeader(http.StatusForbidden)
	}))
	defer origin.Close()
	f := NewFleet()
	for _, name := range []string{"east", "west"} {
		r, err := New(Options{
			Config: &rest.Config{Host: origin.URL + "/k8s/" + name}, Resources: []schema.GroupVersionResource{pods}, Gate: Everybody{},
			Logger: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			err = f.Add(name, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"/clusters/east/version":                    "/k8s/east/version",
		"/clusters/east/api/v1/nodes/a%2Fb":         "/k8s/east/api/v1/nodes/a%2Fb",
		"/clusters/east//version":                   "/k8s/east//version",
		"/clusters/east/../west/version":            "",
		"/clusters/east/%2e%2e/west/version":        "",
		"/clusters/east/..%2fwest/version":          "",
		"/clusters/east/api/./v1/nodes":             "/k8s/east/api/./v1/nodes",
		"/clusters/east/api/../../west/version":     "",
		"/clusters/east/api/v1/nodes/..":            "/k8s/east/api/v1/nodes/..",
		"/clusters/east/a%2fb/../../west":           "",
		"/clusters/east%2f..%2fwest/version":        "",
		"/clusters/../clusters/east/version":        "",
		"/clusters/east/api/v1/nodes/%252e%252e/x":  "/k8s/east/api/v1/nodes/%252e%252e/x",
		"/clusters/east/api/v1/nodes/..a/x...%20.y": "/k8s/east/api/v1/nodes/..a/x...%20.y",
		"/clusters/EAST/version":                    "",
		"/clusters//version":                        "",
	} {
		asked = nil
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("%s asked for %q, want %q: %d %s", path, got, want, w.Code, w.Body)
		}
		if want == "" && (w.Code < 400 || w.Code > 404 || !strings.Contains(w.Body.String(), `"kind":"Status"`)) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
