package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/apiserver"
)

// What clients were sent and the origin sent is counted, by resource and by client.
func TestHealth(t *testing.T) {
	inBubble(t, Options{Gate: Everybody{}}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
		before := r.Health()
		var streams []*modelStream
		for range 5 {
			streams = append(streams, watchAs(t, r, ""))
		}
		if err := origin.Put(pod("a", "1"), pod("b", "1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		bytes := int64(0)
		for _, s := range streams {
			for _, line := range s.take() {
				bytes += int64(len(line))
			}
		}
		h := r.Health()
		s := h.Resources[0]
		if s.Watches != 5 || s.SentEvents != 10 || s.SentBytes != bytes || s.ServedBy["watch"] != 5 || s.Served != 5 {
			t.Errorf("5 watches were sent 10 events of %d bytes: %+v", bytes, s)
		}
		received := s.ReceivedBytes - before.Resources[0].ReceivedBytes
		if s.ReceivedEvents-before.Resources[0].ReceivedEvents != 2 || received <= 0 || received >= bytes || s.SavedBytes() != s.SentBytes-s.ReceivedBytes {
			t.Errorf("2 events came from the origin, in %d bytes: %+v", received, s)
		}
		if s.Events != 2 || s.LogBytes <= 0 || time.Since(s.LogSince) != time.Second {
			t.Errorf("the log is %d events, %d bytes, since %v", s.Events, s.LogBytes, s.LogSince)
		}
		if h.NotReady != nil || h.Origin == "" || h.Total() != s.Traffic {
			t.Errorf("%+v, in total %+v", h, h.Total())
		}
		want := []Client{{Resource: pods, Caller: "everybody", Agent: "unknown", Watches: 5, Since: time.Now().Add(-time.Second), SentBytes: bytes}}
		if diff := cmp.Diff(want, h.Clients); diff != "" {
			t.Error(diff)
		}
		for _, s := range streams {
			s.cancel()
			<-s.done
		}
		if h := r.Health(); len(h.Clients) != 0 || h.Total().Watches != 0 {
			t.Errorf("nobody is left, but %+v", h.Clients)
		}
	})
}

// A read that goes to the origin, and one that is refused, is counted with its cause.
func TestCausesAreCounted(t *testing.T) {
	j := &judge{users: map[string]string{"t1": "ann"}, allowed: map[string]bool{"ann list pods  ": true}}
	inBubble(t, Options{Gate: j.gate(), CallerRequests: 1}, func(t *testing.T, r *Relay, origin *apiserver.Server, _ func()) {
		get := func(path, token string, header ...string) {
			request := httptest.NewRequest(http.MethodGet, path, nil)
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			for i := 0; i < len(header); i += 2 {
				request.Header.Set(header[i], header[i+1])
			}
			r.ServeHTTP(httptest.NewRecorder(), request)
		}
		if err := origin.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); err != nil {
			t.Fatal(err)
		}
		get("/api/v1/pods?resourceVersion=0", "t1")
		get("/api/v1/pods", "t1") // something else has changed, so the copy has no proof
		get("/api/v1/pods?resourceVersion=0", "")
		get("/api/v1/namespaces/default/pods/a", "t1")
		get("/api/v1/pods?resourceVersion=0", "t1", "Impersonate-User", "root")
		get("/api/v1/nodes", "t1")
		get("/api/v1/pods?resourceVersion=0", "stolen")
		get("/api/v1/namespaces/x/pods?resourceVersion=0", "t1")
		get("/api/v1/pods", "t1", hopHeader, r.id)
		leave, err := r.limits.enter("ann", false)
		if err != nil {
			t.Fatal(err)
		}
		get("/api/v1/pods?resourceVersion=0", "t1")
		leave()
		h := r.Health()
		s := h.Resources[0]
		if diff := cmp.Diff(map[string]int64{"behind": 1, "no token": 1, "get without a version": 1, "impersonation": 1}, s.ForwardedBy); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int64{"unauthorized": 1, "forbidden": 1, "loop": 1, "limit": 1}, h.Refused); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int64{"list": 1}, s.ServedBy); diff != "" || h.Passed != 1 || s.Forwarded != 4 || s.Probes != 1 {
			t.Errorf("%s%d passed, %d forwarded, %d probes", diff, h.Passed, s.Forwarded, s.Probes)
		}
	})
}

// A client that does not read is counted when it is cut.
func TestSlowClientsAreCounted(t *testing.T) {
	for name, own := range map[string]bool{"by the server": false, "on connections of their own": true} {
		t.Run(name, func(t *testing.T) { testSlowClient(t, own) })
	}
}

func testSlowClient(t *testing.T, own bool) {
	r := newRig(t, Options{WriteTimeout: 50 * time.Millisecond, OwnConnections: own})
	large := pod("large", "1")
	large.Annotations = map[string]string{"padding": strings.Repeat("x", 200<<10)}
	r.put(large)
	r.settle()
	stuck, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	fmt.Fprint(stuck, "GET /api/v1/pods?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: x\r\nUser-Agent: sleeper/1.0 (x)\r\n\r\n")
	named := false
	for deadline := time.Now().Add(20 * time.Second); ; {
		h := r.relay.Health()
		named = named || len(h.Clients) == 1 && h.Clients[0].Agent == "sleeper"
		if h.Total().SlowClients == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not cut: %+v", h.Total())
		}
		large.Labels["l"] = fmt.Sprint(time.Now().UnixNano())
		r.put(large)
	}
	if !named {
		t.Error("the client was never listed by its name")
	}
	_, _ = io.Copy(io.Discard, stuck)
}

func TestAgents(t *testing.T) {
	for header, want := range map[string]string{
		"kubelet/v1.36.0 (linux/amd64) kubernetes/abc": "kubelet", "": "unknown", "curl": "curl", "a b/c": "a",
		strings.Repeat("ä", 40): strings.Repeat("ä", 32), "\xff\xfe/1": "unknown",
	} {
		if got := agentOf(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
