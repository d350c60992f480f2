package apiserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func dial(t *testing.T, server *Server, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func stillOpen(conn net.Conn) bool {
	_, err := io.Copy(io.Discard, conn)
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A connection that does not send what it announced is closed, authenticated or not. A
// watch stays open.
func TestConnectionsThatSendNothingEnd(t *testing.T) {
	const short = 100 * time.Millisecond
	server, err := startWith(Options{Tokens: []string{"secret"}}, deadlines{short, short, short})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if d := usualDeadlines; d.header <= 0 || d.body <= 0 || d.idle <= 0 {
		t.Errorf("there is a deadline missing: %+v", d)
	}
	host, known := "Host: localhost\r\n", "Host: localhost\r\nAuthorization: Bearer secret\r\n"
	watch := dial(t, server, "GET /api/v1/configmaps?watch=true HTTP/1.1\r\n"+known+"\r\n")
	held := map[string]net.Conn{}
	for what, text := range map[string]string{
		"nothing":                 "",
		"half a header":           "GET /api HTTP/1.1\r\nHo",
		"no body":                 "POST /api/v1/namespaces HTTP/1.1\r\n" + host + "Content-Length: 100\r\n\r\n",
		"no body, with the token": "POST /api/v1/namespaces HTTP/1.1\r\n" + known + "Content-Length: 100\r\n\r\n",
		"no body of a GET":        "GET /api HTTP/1.1\r\n" + known + "Content-Length: 100\r\n\r\n",
		"nothing after an answer": "GET /healthz HTTP/1.1\r\n" + host + "\r\n",
		"an endless body":         "PATCH /api/v1/namespaces/default HTTP/1.1\r\n" + known + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		for i := range 3 {
			held[fmt.Sprint(what, " ", i)] = dial(t, server, text)
		}
	}
	for what, conn := range held {
		if stillOpen(conn) {
			t.Errorf("%s: the connection is still open", what)
		}
	}
	// By now all deadlines have passed.
	if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}}); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(watch); ; {
		if !lines.Scan() {
			t.Fatalf("the watch broke off: %v", lines.Err())
		}
		if strings.Contains(lines.Text(), `"late"`) {
			break
		}
	}
}

// One address does not hold more connections than it may.
func TestConnectionsOfOneClient(t *testing.T) {
	server, err := Start(Options{ClientConnections: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	answered := func(conn net.Conn) bool {
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}
	var open []net.Conn
	for range 5 {
		conn := dial(t, server, request)
		if !answered(conn) {
			t.Fatal("one of few is turned away")
		}
		open = append(open, conn)
	}
	if conn, err := net.Dial("tcp", server.listener.Addr().String()); err == nil {
		_, _ = io.WriteString(conn, request)
		if answered(conn) {
			t.Error("one too many is answered")
		}
		conn.Close()
	}
	open[0].Close()
	for range 1000 { // until the server has seen that it is gone
		conn, err := net.Dial("tcp", server.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request)
		ok := answered(conn)
		conn.Close()
		if ok {
			return
		}
	}
	t.Error("the place of one that has gone is not free")
}
