package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// A watch that has its connection to itself looks as one through net/http: events of every
// size come as they are, and the answer ends properly.
func TestOwnConnections(t *testing.T) {
	for name, own := range map[string]bool{"by the server": false, "on connections of their own": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{OwnConnections: own})
			before := r.origin.Version()
			var want []string
			for i, size := range []int{0, 1, 4 << 10, 10 << 10, 64 << 10, 200 << 10} {
				p := pod(fmt.Sprint("p", i), "a")
				p.Annotations = map[string]string{"filler": strings.Repeat("x", size)}
				r.put(p)
				want = append(want, fmt.Sprint("ADDED p", i, " ", size))
			}
			r.settle()
			want = append(want, "ADDED settle 0")
			seconds := int64(1)
			events, err := r.client().CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: before, TimeoutSeconds: &seconds})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for e := range events.ResultChan() {
				if e.Type == watch.Error {
					t.Fatal(e.Object)
				}
				object := e.Object.(metav1.Object)
				got = append(got, fmt.Sprint(e.Type, " ", object.GetName(), " ", len(object.GetAnnotations()["filler"])))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// connection is a raw one to the relay.
func (r *rig) connection(request string) net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: relay\r\n\r\n", request)
	return conn
}

func (r *rig) awaitWatches(count int) {
	r.t.Helper()
	if err := wait.PollUntilContextTimeout(r.t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return r.relay.limits.open() == count, nil
	}); err != nil {
		r.t.Fatalf("%d watches are open, not %d", r.relay.limits.open(), count)
	}
}

// The end of an answer is written, and the connection closed.
func TestOwnConnectionEnds(t *testing.T) {
	r := newRig(t, Options{OwnConnections: true})
	conn := r.connection("/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion=" + r.origin.Version())
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	head, err := httputil.DumpResponse(response, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"HTTP/1.1 200 OK", "Content-Type: application/json", "Cache-Control: no-cache, private", "Date: ", "Transfer-Encoding: chunked", "Connection: close"} {
		if !strings.Contains(string(head), line) {
			t.Errorf("%q is missing in\n%s", line, head)
		}
	}
	if body, err := io.ReadAll(response.Body); err != nil || len(body) != 0 {
		t.Errorf("%q, %v", body, err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is still open: %v", err)
	}
	r.awaitWatches(0)
	if sent := r.relay.Health().Total().SentBytes; sent == 0 {
		t.Error("nothing was counted")
	}
}

// A client that goes away is noticed without an event.
func TestOwnConnectionOfALostClient(t *testing.T) {
	r := newRig(t, Options{OwnConnections: true})
	conn := r.connection("/api/v1/pods?watch=1")
	r.awaitWatches(1)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	r.awaitWatches(0)
}

// A client that does not read does not keep the relay from stopping.
func TestStopsWithAStuckClient(t *testing.T) {
	r := newRig(t, Options{OwnConnections: true, WriteTimeout: time.Hour})
	large := pod("large", "1")
	large.Annotations = map[string]string{"padding": strings.Repeat("x", 200<<10)}
	r.put(large)
	r.settle()
	r.connection("/api/v1/pods?watch=1&resourceVersion=0")
	r.awaitWatches(1)
	for i := range 100 { // more than any socket takes
		large.Labels["l"] = fmt.Sprint(i)
		r.put(large)
	}
	r.settle()
	began := time.Now()
	r.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
