package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// started serves a site until the test ends, its deadlines changed by a function.
func (r *rig) started(opts Options, change func(*http.Server)) (server *Server, address string) {
	r.t.Helper()
	opts.Address, opts.Logger = "127.0.0.1:0", r.site.options.Logger
	server, err := Listen(r.mirror, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	if change != nil {
		change(server.server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Error(err)
		}
	})
	return server, server.listener.Addr().String()
}

// dial opens a connection and sends something on it.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// ends waits until the server closes a connection, and gives what it sent before.
func ends(t *testing.T, what string, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(conn)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Errorf("%s: the connection is still open", what)
	}
	return string(said)
}

// A connection that does not send what it announced is closed, authenticated or not.
// An event stream stays open.
func TestConnectionsThatSendNothingEnd(t *testing.T) {
	r := newRig(t, rigOptions{})
	const short = 100 * time.Millisecond
	_, address := r.started(Options{Token: testToken}, func(s *http.Server) {
		if s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 || s.IdleTimeout == 0 {
			t.Errorf("there is no deadline: %v, %v, %v", s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout)
		}
		s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = short, short, short
	})
	host := "Host: localhost\r\n"
	known := host + "Authorization: Bearer " + testToken + "\r\n"
	stream := dial(t, address, "GET /api/events HTTP/1.1\r\n"+known+"\r\n")
	held := map[string]net.Conn{}
	for what, text := range map[string]string{
		"nothing":                   "",
		"half a header":             "GET / HTTP/1.1\r\nHo",
		"no body":                   "POST /api/sql HTTP/1.1\r\n" + host + "Content-Type: application/sql\r\nContent-Length: 100\r\n\r\n",
		"no body, with the token":   "POST /api/sql HTTP/1.1\r\n" + known + "Content-Type: application/sql\r\nContent-Length: 100\r\n\r\n",
		"no body of a GET":          "GET / HTTP/1.1\r\n" + host + "Content-Length: 100\r\n\r\n",
		"a body that does not end":  "POST /api/session HTTP/1.1\r\n" + known + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"nothing after an answer":   "GET /healthz HTTP/1.1\r\n" + host + "\r\n",
		"nothing after a refusal":   "GET /api/tables HTTP/1.1\r\n" + host + "\r\n",
		"no body that was refused":  "POST /api/tables HTTP/1.1\r\n" + host + "Content-Length: 100\r\n\r\n",
		"no body of an odd request": "BREW / HTTP/1.1\r\n" + host + "Content-Length: 1000000000\r\n\r\n",
	} {
		for i := range 5 {
			held[fmt.Sprint(what, " ", i)] = dial(t, address, text)
		}
	}
	for what, conn := range held {
		ends(t, what, conn)
	}
	// Two overviews are a second apart, ten times the deadline.
	if err := stream.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines, seen := bufio.NewScanner(stream), 0
	lines.Buffer(nil, 1<<20)
	for seen < 2 && lines.Scan() {
		if lines.Text() == "event: overview" {
			seen++
		}
	}
	if seen < 2 {
		t.Errorf("the stream broke off: %v", lines.Err())
	}
}

// A client that only holds connections open does not lock out one that has the token.
func TestConnectionsOfOneClient(t *testing.T) {
	r := newRig(t, rigOptions{})
	server, address := r.started(Options{Token: testToken, ClientConnections: 10}, nil)
	known := "GET /api/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + testToken + "\r\n\r\n"
	ask := func(conn net.Conn) {
		t.Helper()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%d", answer.StatusCode)
		}
	}
	first := dial(t, address, known)
	ask(first)
	var idle []net.Conn
	for range 30 {
		idle = append(idle, dial(t, address, ""))
	}
	for _, conn := range idle[:20] {
		ends(t, "one of too many", conn)
	}
	ask(dial(t, address, known))
	if _, err := io.WriteString(first, known); err != nil {
		t.Fatal(err)
	}
	ask(first)
	server.site.guard.connections.mu.Lock()
	open := len(server.site.guard.connections.open)
	server.site.guard.connections.mu.Unlock()
	if open > 10 {
		t.Errorf("%d are open", open)
	}

	// Those that have shown it are not closed for new ones.
	for range 9 {
		conn := dial(t, address, known)
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			break
		}
	}
	if _, err := io.WriteString(first, known); err != nil {
		t.Fatal(err)
	}
	ask(first)
}

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return fakeAddr(c.from) }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

type fakeAddr string

func (fakeAddr) Network() string  { return "tcp" }
func (a fakeAddr) String() string { return string(a) }

// The lists stay consistent, the limit holds, and no authenticated connection is
// closed.
func TestConnectionsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 3
		c := newConnections(most)
		var open []*fakeConn
		known := map[*fakeConn]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				conn := &fakeConn{from: rapid.SampledFrom([]string{"127.0.0.1:1", "[::1]:2", "[::ffff:127.0.0.1]:3", "pipe"}).Draw(t, "from")}
				c.add(conn)
				open = append(open, conn)
			},
			"prove": func(t *rapid.T) {
				if len(open) > 0 {
					conn := rapid.SampledFrom(open).Draw(t, "conn")
					r := &http.Request{}
					c.authenticated(r.WithContext(context.WithValue(t.Context(), connectionKey{}, net.Conn(conn))))
					known[conn] = !conn.closed
				}
			},
			"remove": func(t *rapid.T) {
				if len(open) > 0 {
					i := rapid.IntRange(0, len(open)-1).Draw(t, "conn")
					c.remove(open[i])
					open = append(open[:i:i], open[i+1:]...)
				}
			},
			"": func(t *rapid.T) {
				counts, left, unauthenticated := map[*client]int{}, 0, 0
				for _, conn := range open {
					one := c.open[conn]
					if (one == nil) != conn.closed {
						t.Fatalf("closed %v, and forgotten %v", conn.closed, one == nil)
					}
					if conn.closed {
						if known[conn] {
							t.Fatal("one that has shown the token was closed")
						}
						continue
					}
					left++
					counts[one.of]++
					if one.inAll != nil {
						unauthenticated++
					}
				}
				if left != len(c.open) || len(counts) != len(c.clients) || unauthenticated != c.unauthenticated.Len() {
					t.Fatalf("%d are left of %d, %d clients of %d, %d unauthenticated of %d", left, len(c.open), len(counts), len(c.clients), unauthenticated, c.unauthenticated.Len())
				}
				for of, n := range counts {
					if n > most || n != of.count {
						t.Fatalf("a client has %d, counted %d", n, of.count)
					}
				}
			},
		})
	})
}

// A certificate that is renewed is served, and one that cannot be used is not.
func TestCertificateIsReadAgain(t *testing.T) {
	cert, key, roots := certificate(t)
	r := newRig(t, rigOptions{})
	server, address := r.started(Options{Token: testToken, CertFile: cert, KeyFile: key}, nil)
	serial := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "tarn.test"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return fmt.Sprintf("%x", conn.ConnectionState().PeerCertificates[0].Signature)
	}
	before := serial()
	nextCert, nextKey, nextRoots := certificate(t)
	replace := func(from, to string) {
		t.Helper()
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute)
		if err := os.Chtimes(to, later, later); err != nil {
			t.Fatal(err)
		}
	}
	forget := func() { // when it last looked
		held := server.certificate
		held.mu.Lock()
		defer held.mu.Unlock()
		held.looked = time.Time{}
	}
	replace(nextCert, cert)
	forget()
	if got := serial(); got != before {
		t.Error("a certificate is served whose key is not there yet")
	}
	replace(nextKey, key)
	forget()
	roots = nextRoots
	if got := serial(); got == before {
		t.Error("the old certificate is served")
	}
}

// The access log has client and path of each request, and no secrets.
func TestAccessLog(t *testing.T) {
	var text strings.Builder
	r := newRig(t, rigOptions{web: Options{Token: testToken, AccessLog: logTo(&text)}})
	session := r.openSession()
	r.ask("/api/tables/pods?q=secret-word", bearer(session))
	r.ask("/api/objects/pods/default/none", bearer(testToken))
	r.ask("/metrics")
	for _, want := range []string{
		`as=token method=POST host=localhost:8276 path=/api/session status=200`,
		`as=session method=GET host=localhost:8276 path=/api/tables/pods status=200`,
		`as=token method=GET host=localhost:8276 path=/api/objects/pods/default/none status=404`,
		`as=nobody method=GET host=localhost:8276 path=/metrics status=401`, `remote=192.0.2.1:1234`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is not in\n%s", want, text.String())
		}
	}
	for _, secret := range []string{session, testToken, "secret-word"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("%s is in\n%s", secret, text.String())
		}
	}
	if n := strings.Count(text.String(), "\n"); n != 4 {
		t.Errorf("%d lines", n)
	}
}
