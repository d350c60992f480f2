package web

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/relay"
)

// relayRig is a relay of pods with a page.
type relayRig struct {
	t      *testing.T
	origin *apiserver.Server
	relay  *relay.Relay
	api    string
	page   string
	fleet  bool
}

func newRelayRig(t *testing.T, opts Options) *relayRig {
	t.Helper()
	r := &relayRig{t: t, origin: apiserver.New(apiserver.Options{AnyNamespace: true})}
	t.Cleanup(r.origin.Close)
	var err error
	r.relay, err = relay.New(relay.Options{
		Config: r.origin.Config(), Resources: []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("pods")},
		Gate: relay.Everybody{}, DrainTime: time.Millisecond, Logger: logTo(t.Output()),
	})
	if err != nil {
		t.Fatal(err)
	}
	opts.Address, opts.Metrics, opts.Logger = "127.0.0.1:0", http.NotFoundHandler(), logTo(t.Output())
	server, err := ListenRelay(r.health, opts)
	if err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(r.relay)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, 2)
	go func() { _ = r.relay.Run(ctx); ended <- struct{}{} }()
	go func() { _ = server.Serve(ctx); ended <- struct{}{} }()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
		api.Close()
	})
	r.api, r.page = api.URL, server.URL()
	if err := r.relay.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// health has the relay as the only one, or in a fleet whose other cluster is unreachable.
func (r *relayRig) health() RelayHealth {
	h := r.relay.Health()
	if !r.fleet {
		return RelayHealth{Clusters: map[string]relay.Health{"": h}, NotReady: h.NotReady}
	}
	return RelayHealth{Clusters: map[string]relay.Health{"east": h, "west": {Origin: "https://west.example.com", NotReady: errors.New("no contact with the origin"), Since: time.Now()}}}
}

// watch opens a watch and reads its events until the test ends.
func (r *relayRig) watch(agent string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.api+"/api/v1/pods?watch=1&resourceVersion=0", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	transport := &http.Transport{}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		<-ended
		answer.Body.Close()
		transport.CloseIdleConnections()
	})
}

// The page of a relay names its origin, who watches, how fresh it is, and what it saves.
func TestBrowserRelay(t *testing.T) {
	b := newBrowser(t)
	r := newRelayRig(t, Options{Anonymous: true, Name: "test"})
	for range 3 {
		r.watch("kubelet/v1.36.0 (linux/amd64)")
	}
	r.watch("<b>dashboard</b>/2")
	b.open(r.page)
	b.text("#link", "live")
	b.text(".tiles", "Origin")
	b.text(".tiles", "of 2 clients")
	b.sees("the resource", `document.querySelector('.tables tbody th').textContent === 'pods' && document.querySelector('.tables tbody .state').textContent.includes('following')`)
	b.text(".relay", "kubelet")
	b.sees("a name is text", `!document.querySelector('main b.x, main td b, main th b') && document.querySelector('main').textContent.includes('<b>dashboard<')`)
	b.sees("no way to tables", `document.querySelector('[data-nav=explorer]').hidden && document.querySelector('[data-nav=problems]').hidden`)
	if err := r.origin.Put(pod("default", "web-1")); err != nil {
		t.Fatal(err)
	}
	b.text(".tiles", "4 so far")
	b.sees("the charts move", `document.querySelectorAll('.chart .stroke[d]').length === 4`)
	b.press("2")
	b.text(".tiles", "Saved upstream")
	if messages := b.console(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

// The page of a fleet has all clusters in its tables, and says which are not ready.
func TestBrowserRelayFleet(t *testing.T) {
	b := newBrowser(t)
	r := newRelayRig(t, Options{Anonymous: true, Name: "test"})
	r.fleet = true
	r.watch("kubelet/v1.36.0 (linux/amd64)")
	b.open(r.page)
	b.text("#link", "live")
	b.text(".tiles", "2 clusters")
	b.text(".tiles", "1 ready")
	b.text(".notice", "Not ready: west: no contact with the origin")
	for i, want := range []string{"Cluster east Resource pods", "Cluster east Program kubelet"} {
		b.sees(want, fmt.Sprintf(`(() => {
			const table = document.querySelectorAll('.tables')[%d], row = table.querySelector('tbody tr')
			return [...table.querySelectorAll('thead th')].slice(0, 2).map((th, i) => th.textContent + ' ' + row.children[i].textContent).join(' ') === %q
		})()`, i, want))
	}
	if messages := b.console(); len(messages) > 0 {
		t.Errorf("the console has %q", messages)
	}
}

// Relays of a fleet are shown together: their sums, and the clients with most watches.
func TestRelaysTogether(t *testing.T) {
	away := errors.New("no contact")
	all := RelayHealth{Clusters: map[string]relay.Health{
		"east": {Origin: "https://east", NotReady: away, Passed: 2, Refused: map[string]int64{"limit": 1}, Clients: []relay.Client{{Agent: "few", Watches: 1}, {Agent: "fewer"}}},
		"west": {Origin: "https://west", Passed: 3, Refused: map[string]int64{"limit": 4}, Clients: []relay.Client{{Agent: "many", Watches: 9}}},
	}}
	s := statusOf(all, time.Minute)
	if s.NotReady != "" || s.Passed != 5 || s.Refused["limit"] != 5 || s.ClientCount != 3 || s.Origin != "" {
		t.Errorf("together: %+v", s)
	}
	if c := s.Clients; c[0].Agent != "many" || c[0].Cluster != "west" || c[1].Agent != "few" || c[1].Cluster != "east" {
		t.Errorf("the clients are %+v", c)
	}
	if c := s.Clusters; len(c) != 2 || c[0] != (relayCluster{"east", "https://east", "no contact"}) || c[1] != (relayCluster{Name: "west", Origin: "https://west"}) {
		t.Errorf("the clusters are %+v", c)
	}
	all.NotReady = errors.New("none is ready")
	if s := statusOf(all, time.Minute); s.NotReady != "none is ready" {
		t.Errorf("not ready because %q", s.NotReady)
	}
}

func TestRelaySite(t *testing.T) {
	r := newRelayRig(t, Options{Token: testToken})
	r.watch("kubelet/v1")
	ask := func(path string, token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(r.page, "/")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, body(t, answer)
	}
	defer http.DefaultClient.CloseIdleConnections()
	for path, want := range map[string]int{
		"/api/tables": http.StatusUnauthorized, "/metrics": http.StatusUnauthorized, "/api/events": http.StatusUnauthorized, "/readyz": http.StatusOK, "/healthz": http.StatusOK, "/": http.StatusOK,
	} {
		if status, text := ask(path, ""); status != want {
			t.Errorf("%s without the token: %d %s", path, status, text)
		}
	}
	for path, want := range map[string]int{
		"/api/tables/pods": http.StatusNotFound, "/api/objects/pods/a": http.StatusNotFound, "/api/sql": http.StatusNotFound, "/api/problems": http.StatusNotFound,
		"/api/events?table=pods": http.StatusNotFound, "/api/tables?history=1": http.StatusOK,
	} {
		if status, text := ask(path, testToken); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	_, text := ask("/api/tables", testToken)
	var found overview
	if err := json.Unmarshal([]byte(text), &found); err != nil || found.Relay == nil || len(found.Relay.Clients) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	if c := found.Relay.Clients[0]; c.Agent != "kubelet" || c.Caller != "everybody" || c.Watches != 1 || c.Resource != "pods" {
		t.Errorf("%+v", c)
	}
	if p := found.Relay.Resources[0]; p.Name != "pods" || !p.Fresh || p.Watches != 1 || p.Served != 1 {
		t.Errorf("%+v", p)
	}
	many := relay.Health{NotReady: errors.New("no contact"), Clients: make([]relay.Client, mostClients+9)}
	if s := statusOf(RelayHealth{Clusters: map[string]relay.Health{"": many}, NotReady: many.NotReady}, time.Minute); len(s.Clients) != mostClients || s.ClientCount != mostClients+9 || s.NotReady != "no contact" {
		t.Errorf("%d of %d clients, %q", len(s.Clients), s.ClientCount, s.NotReady)
	}
}

// A file without certificates is refused.
func TestAuthorities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("nothing")
	if _, err := Authorities(file, logTo(t.Output())); err == nil || !strings.Contains(err.Error(), "has no certificates") {
		t.Errorf("%v", err)
	}
	write(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	pool, err := Authorities(file, logTo(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{Roots: pool()}
	if _, err := server.Certificate().Verify(options); err != nil {
		t.Error(err)
	}
}
