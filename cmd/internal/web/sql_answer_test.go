package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
)

// post asks a page for SQL over a connection.
func post(ctx context.Context, t *testing.T, address, query, sql string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(address, "/")+"/api/sql"+query, strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/sql")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(r)
}

// A long answer is sent while it is computed, and nobody holds it: neither the values
// nor the JSON, which may be six times as long.
func TestSQLAnswersAreNotHeld(t *testing.T) {
	r := durable(t, rigOptions{objects: []k8sruntime.Object{pod("default", "web-1")}})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	const size = 1_000_000
	for _, format := range []string{"", "?format=json", "?format=table"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		response, err := post(t.Context(), t, address, format, "SELECT t.a FROM (SELECT replace(printf('%.1000000c', 'x'), 'x', char(1)) AS a) t, (VALUES (1), (2), (3)) v")
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || format != "?format=table" && n < 3*6*size {
			t.Errorf("%q: %d bytes, %v, %v", format, n, response.Status, err)
		}
		runtime.ReadMemStats(&after)
		// replace makes the value twice, in Go.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 3*6*size/2 {
			t.Errorf("%q: %d MB of an answer took %d MB of memory", format, n>>20, grown>>20)
		}
	}
}

// A statement that fails after rows were sent says so: to the page behind the rows,
// to others by an answer that breaks off.
func TestSQLThatFailsLate(t *testing.T) {
	r := durable(t, rigOptions{objects: []k8sruntime.Object{pod("default", "web-1")}})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	const late = "SELECT CASE WHEN value = 3000 THEN json('{') ELSE printf('%.100c', 'x') END AS v FROM generate_series(1, 5000)"
	response, err := post(t.Context(), t, address, "?rows=5000", late)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var told struct {
		Rows  [][]any
		Error string
	}
	if err := json.NewDecoder(response.Body).Decode(&told); err != nil || len(told.Rows) != 2999 || !strings.Contains(told.Error, "malformed JSON") {
		t.Errorf("the page is told %d rows, %q, %v", len(told.Rows), told.Error, err)
	}
	for format := range resultTypes {
		response, err := post(t.Context(), t, address, "?rows=5000&format="+format, late)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err == nil {
			t.Errorf("%s: the answer seems to be complete", format)
		}
		response.Body.Close()
		response, err = post(t.Context(), t, address, "?format="+format, strings.Replace(late, "= 3000", "= 1", 1))
		if err != nil || response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: one that fails at once says %v, %v", format, response.Status, err)
		}
		response.Body.Close()
	}
}

// If there are more rows than the limit, the end of the answer says so.
func TestSQLReportsMoreRows(t *testing.T) {
	r := durable(t, rigOptions{})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	for rows, want := range map[string]string{"2": "true", "3": ""} {
		response, err := post(t.Context(), t, address, "?format=csv&rows="+rows, "VALUES (1), (2), (3)")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if got := response.Trailer.Get(moreRows); err != nil || got != want {
			t.Errorf("with %s rows the trailer is %q, %v; want %q", rows, got, err, want)
		}
	}
}

// Clients that go away end their statements: others are answered soon after.
func TestSQLEndsWithItsClients(t *testing.T) {
	r := durable(t, rigOptions{})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	const slow = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x LIMIT 3000000) SELECT n FROM x ORDER BY n*7919%1000003, n LIMIT 1"
	ctx, leave := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range maxStatements {
		clients.Go(func() {
			if response, err := post(ctx, t, address, "?timeout=20s", slow); err == nil {
				response.Body.Close()
			}
		})
	}
	full := func() bool {
		response, err := post(t.Context(), t, address, "", "SELECT 1")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode == http.StatusTooManyRequests
	}
	for begin := time.Now(); !full() && time.Since(begin) < 10*time.Second; {
	}
	leave()
	clients.Wait()
	gone := time.Now()
	for full() {
		if time.Since(gone) > 15*time.Second { // a second is expected
			t.Fatal("the statements of clients that are gone are still computed")
		}
		time.Sleep(10 * time.Millisecond) // real: SQLite computes meanwhile
	}
}

// A client that does not read its answer is given up: others are answered within twice
// the time that its statement has.
func TestSQLOfClientsThatDoNotRead(t *testing.T) {
	r := durable(t, rigOptions{})
	address, _ := r.serveOn("127.0.0.1:0", Options{})
	host := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	const long = "SELECT printf('%.1000000c', 'x') FROM generate_series(1, 60)"
	for range maxStatements {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /api/sql?timeout=2s&format=csv HTTP/1.1\r\nHost: %s\r\nContent-Type: application/sql\r\nContent-Length: %d\r\n\r\n%s", host, len(long), long)
	}
	began := time.Now()
	held := false
	for {
		response, err := post(t.Context(), t, address, "", "SELECT 1")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		switch full := response.StatusCode == http.StatusTooManyRequests; {
		case full:
			held = true
		case held, time.Since(began) > 15*time.Second: // on a busy machine the page may never be seen full
			t.Logf("others were kept out: %t, for %v at most", held, time.Since(began))
			return
		}
		if time.Since(began) > 30*time.Second { // four seconds are expected
			t.Fatalf("clients that do not read keep others out; was the page full: %v", held)
		}
		time.Sleep(10 * time.Millisecond) // real: sockets are
	}
}
