package measure

import (
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestTransportsAreNoted(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_ = gzip.NewWriter(w).Close()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for _, test := range []struct {
		paths []string
		want  string
	}{
		{[]string{"/api"}, ""},
		{[]string{"/pods?watch=true"}, "HTTP/2.0, TLS, a stream"},
		{[]string{"/pods", "/pods?watch=true"}, "HTTP/2.0, TLS, gzip"},
	} {
		var seen transports
		client, err := rest.HTTPClientFor(seen.watching(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "pods"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range test.paths {
			resp, err := client.Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		client.CloseIdleConnections()
		if got := seen.last(); got != test.want {
			t.Errorf("%v: %q, want %q", test.paths, got, test.want)
		}
	}
}
