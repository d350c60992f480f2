package relay

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// A request whose target is not a path does not choose the path at the origin: beside that of
// the relay there may be other clusters.
func TestTargetsThatAreNoPaths(t *testing.T) {
	asked := make(chan string, 1)
	origin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.EscapedPath() }))
	defer origin.Close()
	r, err := New(Options{
		Config: &rest.Config{Host: origin.URL + "/k8s/east"}, Resources: []schema.GroupVersionResource{pods}, Gate: Everybody{},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r)
	defer server.Close()
	for target, want := range map[string]string{
		"/version":                                "200 /k8s/east/version",
		"http://elsewhere/k8s/west/version":       "200 /k8s/east/k8s/west/version",
		"x:" + origin.URL + "/k8s/west/version":   "400",
		"http:" + origin.URL + "/k8s/west/secret": "400",
		"x:version":                               "400",
	} {
		if got := askRaw(t, server, target, asked); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

// askRaw sends a request with any target, and returns the status, and what the origin was asked.
func askRaw(t *testing.T, server *httptest.Server, target string, asked <-chan string) string {
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n", target)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got := []string{fmt.Sprint(response.StatusCode)}
	select {
	case path := <-asked:
		got = append(got, path)
	default:
	}
	return strings.Join(got, " ")
}
