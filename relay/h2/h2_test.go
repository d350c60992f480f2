package h2

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// start serves a handler, and returns the server and a client that speaks HTTP/2.
func start(t *testing.T, configure func(*http.Server), handler http.HandlerFunc) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if configure != nil {
		configure(s.Config)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	client := s.Client()
	t.Cleanup(client.CloseIdleConnections)
	return s, client
}

func ask(t *testing.T, client *http.Client, method, url string, body io.Reader) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "failed"
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	head := fmt.Sprintf("%s %d length=%d type=%s got=%q", response.Proto, response.StatusCode, response.ContentLength, response.Header.Get("Content-Type"), response.Header["X-Twice"])
	return fmt.Sprintf("%s %d bytes %.40q %v", head, len(data), data, err)
}

var answers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/small":
		fmt.Fprint(w, "small")
	case "/none":
	case "/nocontent":
		w.WriteHeader(http.StatusNoContent)
	case "/missing":
		http.NotFound(w, r)
	case "/large":
		w.Header()["X-Twice"] = []string{"a", "b"}
		for i := range 300 {
			fmt.Fprint(w, strings.Repeat(string(rune('a'+i%26)), 7000))
		}
	case "/flushed":
		fmt.Fprint(w, "<html>")
		w.(http.Flusher).Flush()
		w.Header().Set("Too-Late", "yes")
		fmt.Fprint(w, strings.Repeat("x", 5000))
	case "/echo":
		_, _ = io.Copy(w, r.Body)
	case "/unread":
		fmt.Fprint(w, r.ContentLength)
	case "/headers":
		fmt.Fprint(w, r.Host != "", r.Method, r.RequestURI, r.TLS != nil, r.Header.Get("X"), r.Header.Get("User-Agent") != "", r.ProtoMajor, r.RemoteAddr != "")
	case "/panic":
		panic("on purpose")
	case "/halfpanic":
		fmt.Fprint(w, strings.Repeat("x", 10_000))
		panic(http.ErrAbortHandler)
	}
})

// Answers are those of net/http.
func TestLikeNetHTTP(t *testing.T) {
	ours, client := start(t, Configure, answers)
	theirs, other := start(t, nil, answers)
	large := strings.Repeat("0123456789", 200_000)
	for _, path := range []string{"/small", "/none", "/nocontent", "/missing", "/large", "/flushed", "/headers?q=1", "/panic", "/halfpanic"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
			got, want := ask(t, client, method, ours.URL+path, nil), ask(t, other, method, theirs.URL+path, nil)
			if got != want {
				t.Errorf("%s %s: %s, net/http: %s", method, path, got, want)
			}
		}
	}
	for _, path := range []string{"/echo", "/unread", "/missing"} {
		for _, body := range []string{"", "small", large} {
			// The second one announces no length.
			for _, reader := range []func() io.Reader{func() io.Reader { return strings.NewReader(body) }, func() io.Reader { return io.MultiReader(strings.NewReader(body)) }} {
				got, want := ask(t, client, http.MethodPost, ours.URL+path, reader()), ask(t, other, http.MethodPost, theirs.URL+path, reader())
				if got != want {
					t.Errorf("%s with %d bytes: %s, net/http: %s", path, len(body), got, want)
				}
			}
		}
	}
}

// Very many streams of one connection send and receive at the same time, with windows that
// are smaller than what they send.
func TestManyStreams(t *testing.T) {
	s, client := start(t, Configure, answers)
	var running sync.WaitGroup
	for i := range 240 {
		running.Go(func() {
			body := bytes.Repeat([]byte{byte(i)}, 1000*i)
			response, err := client.Post(s.URL+"/echo", "", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if data, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(data, body) {
				t.Errorf("%d: %d of %d bytes, %v", i, len(data), len(body), err)
			}
		})
	}
	running.Wait()
}

// A client that goes, or only gives up one request, ends the context of the request.
func TestGone(t *testing.T) {
	ended := make(chan error, 10)
	s, client := start(t, Configure, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		_, err := w.Write(make([]byte, 10_000))
		ended <- err
	})
	ctx, cancel := context.WithCancel(t.Context())
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = response.Body.Close()
	if err := <-ended; err == nil {
		t.Error("a request that was given up can be answered")
	}
	if response, err = client.Get(s.URL); err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.CloseClientConnections()
	if err := <-ended; err == nil {
		t.Error("a client that has gone can be answered")
	}
}

// A client that does not read a stream holds that stream up, until its deadline, and not the
// others of its connection.
func TestUnread(t *testing.T) {
	s, client, ended := unread(t)
	response, err := client.Get(s.URL + "/unread")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, client, http.MethodGet, s.URL+"/large", nil); !strings.Contains(got, " 2100000 bytes") {
		t.Errorf("beside a stream that is not read: %s", got)
	}
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	_ = response.Body.Close()
}

// A stream of a client that reads nothing at all ends as well.
func TestUnreadConnection(t *testing.T) {
	t.Parallel() // it takes as long as latePatience
	s, _, ended := unread(t)
	conn, framer := dial(t, s)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteWindowUpdate(0, 1<<30); err != nil {
		t.Fatal(err)
	}
	request(t, framer, 1, "/unread")
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	_ = conn.Close()
}

// unread serves /unread, which writes until it fails, and is late after a while; ended has the
// error.
func unread(t *testing.T) (*httptest.Server, *http.Client, chan error) {
	ended := make(chan error, 1)
	s, client := start(t, Configure, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/unread" {
			answers(w, r)
			return
		}
		w.(http.Flusher).Flush()
		late := time.AfterFunc(300*time.Millisecond, func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) })
		defer late.Stop()
		for {
			if _, err := w.Write(make([]byte, 10_000)); err != nil {
				ended <- err
				return
			}
		}
	})
	return s, client, ended
}

// dial opens a connection whose frames the test writes.
func dial(t *testing.T, s *httptest.Server) (*tls.Conn, *http2.Framer) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return conn, framer
}

func request(t *testing.T, framer *http2.Framer, id uint32, path string) {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for name, value := range map[string]string{":method": "GET", ":scheme": "https", ":path": path, ":authority": "a"} {
		_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	// The server may have ended the connection.
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
}

// A client that resets requests faster than they end is sent away.
func TestRapidReset(t *testing.T) {
	release := make(chan struct{})
	var most, running int
	var mu sync.Mutex
	s, _ := start(t, Configure, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-release
	})
	_, framer := dial(t, s)
	gone := make(chan http2.ErrCode, 1)
	go func() {
		for {
			f, err := framer.ReadFrame()
			if err != nil {
				gone <- http2.ErrCodeNo
				return
			}
			if away, ok := f.(*http2.GoAwayFrame); ok {
				gone <- away.ErrCode
				return
			}
		}
	}()
	for i := range uint32(1 << 20) { // until the connection has ended
		request(t, framer, 2*i+1, "/")
		if err := framer.WriteRSTStream(2*i+1, http2.ErrCodeCancel); err != nil {
			break
		}
	}
	// What the server says at the end may be lost: it does not read what was sent after that.
	if code := <-gone; code != http2.ErrCodeEnhanceYourCalm && code != http2.ErrCodeNo {
		t.Errorf("the connection ended with %v", code)
	}
	close(release)
	mu.Lock()
	defer mu.Unlock()
	if most > 2*maxStreams {
		t.Errorf("%d handlers ran at the same time", most)
	}
}

// A server that shuts down answers what was asked, and ends connections after that.
func TestShutdown(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	s, client := start(t, Configure, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		fmt.Fprint(w, "answered")
	})
	got := make(chan string)
	go func() { got <- ask(t, client, http.MethodGet, s.URL, nil) }()
	<-asked
	done := make(chan error)
	s.Config.RegisterOnShutdown(func() { close(release) })
	go func() { done <- s.Config.Shutdown(t.Context()) }()
	if text := <-got; !strings.Contains(text, "answered") {
		t.Error(text)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A connection without requests is closed after the idle time, and one that says nothing
// after the time that it has to begin.
func TestIdle(t *testing.T) {
	for name, test := range map[string]struct {
		greets bool
		want   time.Duration
	}{"without requests": {true, time.Minute}, "that says nothing": {false, greetPatience}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				began, read := time.Now(), make(chan struct{})
				go func() {
					defer close(read)
					_, _ = io.Copy(io.Discard, client)
				}()
				if test.greets {
					go func() {
						_, _ = io.WriteString(client, http2.ClientPreface)
						_ = http2.NewFramer(client, nil).WriteSettings()
					}()
				}
				all := &conns{open: map[*conn]struct{}{}}
				all.serveConn(&http.Server{IdleTimeout: time.Minute}, server, answers)
				if lasted := time.Since(began); lasted != test.want {
					t.Errorf("it is closed after %v, want %v", lasted, test.want)
				}
				<-read
			})
		})
	}
}
