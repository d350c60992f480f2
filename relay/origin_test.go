package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// A connection that is upgraded, as for exec and port-forward, carries bytes both ways,
// with the caller's credentials and none of the relay's.
func TestUpgrade(t *testing.T) {
	headers := make(chan http.Header, 1)
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Clone()
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		fmt.Fprint(connection, "echo "+line)
	}))
	defer far.Close()
	origin, err := newOrigin(&rest.Config{Host: far.URL, BearerToken: "of the relay", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "id", false)
	if err != nil {
		t.Fatal(err)
	}
	defer origin.close()
	near := httptest.NewServer(origin)
	defer near.Close()
	connection, err := net.Dial("tcp", near.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "POST /api/v1/namespaces/n/pods/p/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mine\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	reader := bufio.NewReader(connection)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", answer, err)
	}
	fmt.Fprint(connection, "hello\n")
	if line, err := reader.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	if seen := <-headers; seen.Get("Authorization") != "Bearer mine" || seen.Get(hopHeader) != "id" {
		t.Errorf("%v", seen)
	}
}

// A request without credentials has none at the origin either. An origin that is unreachable is
// reported by one clear line.
func TestNoCredentialsOfTheRelay(t *testing.T) {
	seen := make(chan string, 2)
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") }))
	config := &rest.Config{Host: far.URL, BearerToken: "of the relay", Username: "u", Password: "p"}
	origin, err := newOrigin(config, "id", false)
	if err != nil {
		t.Fatal(err)
	}
	defer origin.close()
	near := httptest.NewServer(origin)
	defer near.Close()
	ask := func() (int, string) {
		answer, err := http.Get(near.URL + "/api/v1/nodes")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	code, _ := ask()
	if sent := <-seen; code != http.StatusOK || sent != "" {
		t.Errorf("%d, with %q", code, sent)
	}
	far.Close()
	if code, body := ask(); code != http.StatusBadGateway || !strings.Contains(body, "the relay cannot reach its origin") {
		t.Errorf("%d %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
}
