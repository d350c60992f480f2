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
	"time"

	"github.com/tarnproject/tarn/apiserver"
)

// TestWatchOverAWebSocket watches as programs in browsers do. The API server sends events in the
// frames of a WebSocket, which the relay does not implement, so the origin has to answer.
func TestWatchOverAWebSocket(t *testing.T) {
	for _, own := range []bool{false, true} {
		r := &rig{t: t, origin: apiserver.New(apiserver.Options{AnyNamespace: true})}
		t.Cleanup(r.origin.Close)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Upgrade") == "websocket" {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes for %s", req.Header.Get("Authorization"))
				return
			}
			r.origin.ServeHTTP(w, req)
		}))
		t.Cleanup(front.Close)
		r.start(front.URL, Options{OwnConnections: own})
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprint(conn, "GET /api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=1 HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer me\r\n"+
			"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		reader := bufio.NewReader(conn)
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("the answer is %s", answer.Status)
		}
		if frames, err := io.ReadAll(reader); string(frames) != "frames for Bearer me" {
			t.Errorf("%q, %v", frames, err)
		}
		if by := r.relay.Stats()[0].ForwardedBy; by["websocket"] != 1 {
			t.Errorf("forwarded: %v", by)
		}
	}
}
