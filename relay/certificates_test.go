package relay

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
)

// authority signs client certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, a.key = a.sign(template, template)
	return a
}

func (a *authority) sign(template, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// client returns a certificate of a user, which ends at some time and is for some use.
func (a *authority) client(ends time.Time, use x509.ExtKeyUsage, name string, groups ...string) *tls.Certificate {
	certificate, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: ends, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}, a.certificate)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func (a *authority) usual(name string, groups ...string) *tls.Certificate {
	return a.client(time.Now().Add(time.Minute), x509.ExtKeyUsageClientAuth, name, groups...)
}

// doorman is a gate that writes down which callers it was asked about, and knows one token.
type doorman struct {
	mu    sync.Mutex
	asked []Caller
}

func (d *doorman) Caller(req *http.Request) (Caller, error) {
	if req.Header.Get("Authorization") != "Bearer of tim" {
		return Caller{}, errNoToken
	}
	return Caller{Name: "tim"}, nil
}

func (d *doorman) Allow(_ context.Context, a Access) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, a.Caller)
	if a.Caller.Name == "eve" {
		return forbidden(a, "")
	}
	return nil
}

// certificateRig is a relay behind TLS, and an origin that writes headers down.
type certificateRig struct {
	*rig
	gate   *doorman
	server *httptest.Server
	mu     sync.Mutex
	seen   []http.Header
}

func newCertificateRig(t *testing.T, options Options) *certificateRig {
	r := &certificateRig{rig: &rig{t: t, origin: apiserver.New(apiserver.Options{AnyNamespace: true})}, gate: &doorman{}}
	t.Cleanup(r.origin.Close)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Probe") != "" {
			r.mu.Lock()
			r.seen = append(r.seen, req.Header.Clone())
			r.mu.Unlock()
		}
		r.origin.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	options.Gate = r.gate
	r.rig.start(front.URL, options)
	r.server = httptest.NewUnstartedServer(r.relay)
	r.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	r.server.StartTLS()
	t.Cleanup(func() {
		r.stop()
		r.server.Close()
	})
	return r
}

// do makes a request with a certificate, nil for none. It returns what the origin saw, nil
// if it was not asked.
func (r *certificateRig) do(certificate *tls.Certificate, path string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	client := r.transport(certificate)
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.server.URL+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Probe", "1")
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	r.mu.Lock()
	r.seen = nil
	r.mu.Unlock()
	answer, err := client.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		return answer.StatusCode, string(body), nil
	}
	return answer.StatusCode, string(body), r.seen[0]
}

func (r *certificateRig) transport(certificate *tls.Certificate) *http.Transport {
	trust := &tls.Config{RootCAs: r.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if certificate != nil {
		trust.Certificates = []tls.Certificate{*certificate}
	}
	return &http.Transport{TLSClientConfig: trust}
}

const copyPath, originPath = "/api/v1/pods?resourceVersion=0", "/api/v1/nodes"

// A caller with a certificate reads from the copy under the name in it, and is asked about
// at the origin under this name and these groups.
func TestCertificates(t *testing.T) {
	ca := newAuthority(t)
	r := newCertificateRig(t, Options{ClientCAs: ca.pool})
	r.put(pod("a", "1"))
	r.settle()
	code, body, _ := r.do(ca.usual("ann", "devs", "leads"), copyPath)
	if code != http.StatusOK || !strings.Contains(body, `"name":"a"`) {
		t.Errorf("%d %s", code, body)
	}
	if diff := cmp.Diff([]Caller{{Name: "ann", Groups: []string{"devs", "leads", "system:authenticated"}}}, r.gate.asked); diff != "" {
		t.Error(diff)
	}
	for name, test := range map[string]struct {
		with *tls.Certificate
		path string
		code int
		text string
	}{
		"no right":              {ca.usual("eve"), copyPath, http.StatusForbidden, `User \"eve\" cannot list resource \"pods\"`},
		"needs the origin":      {ca.usual("ann"), originPath, http.StatusForbidden, "send a bearer token, ask the origin directly, or have the relay started with --impersonate"},
		"another authority":     {newAuthority(t).usual("root", "system:masters"), copyPath, http.StatusUnauthorized, "signed by unknown authority"},
		"another, at origin":    {newAuthority(t).usual("root", "system:masters"), originPath, http.StatusUnauthorized, "signed by unknown authority"},
		"ended":                 {ca.client(time.Now().Add(-time.Minute), x509.ExtKeyUsageClientAuth, "ann"), copyPath, http.StatusUnauthorized, "expired"},
		"of a server":           {ca.client(time.Now().Add(time.Minute), x509.ExtKeyUsageServerAuth, "ann"), copyPath, http.StatusUnauthorized, "incompatible key usage"},
		"without a name":        {ca.usual(""), copyPath, http.StatusUnauthorized, "a name is not empty"},
		"a name with a space":   {ca.usual(" root"), copyPath, http.StatusUnauthorized, "no spaces at its ends"},
		"a group with a line":   {ca.usual("ann", "a\nb"), copyPath, http.StatusUnauthorized, "no control characters"},
		"without a certificate": {nil, originPath, http.StatusOK, "NodeList"},
	} {
		if code, body, _ := r.do(test.with, test.path); code != test.code || !strings.Contains(body, test.text) {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	if refused := r.relay.Health().Refused; refused["certificate"] != 1 || refused["unauthorized"] != 7 || refused["forbidden"] != 1 {
		t.Errorf("%v", refused)
	}
}

// What needs the origin goes there in the caller's name, if that is configured, and nothing
// that a caller sends changes whose name it is.
func TestImpersonation(t *testing.T) {
	ca := newAuthority(t)
	r := newCertificateRig(t, Options{ClientCAs: ca.pool, Impersonate: true})
	ann := ca.usual("ann", "devs", "leads")
	want := func(name string, seen http.Header) {
		t.Helper()
		if seen == nil {
			t.Fatalf("%s: the origin was not asked", name)
		}
		got := http.Header{}
		for header, values := range seen {
			if header == "Authorization" || strings.HasPrefix(header, "Impersonate-") || strings.HasPrefix(header, "X-Remote-") {
				got[header] = values
			}
		}
		expected := http.Header{"Authorization": {"Bearer relay"}, "Impersonate-User": {"ann"}, "Impersonate-Group": {"devs", "leads"}}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, header := range map[string][]string{
		"usual":                   nil,
		"headers to be removed":   {"Connection", "Impersonate-User, Impersonate-Group, Authorization"},
		"headers of a proxy":      {"X-Remote-User", "root", "X-Remote-Group", "system:masters", "X-Remote-Extra-Scopes", "all"},
		"a forged hop":            {hopHeader, "another relay"},
		"a forged hop, removed":   {hopHeader, "x", "Connection", hopHeader},
		"a forwarded certificate": {"X-Forwarded-Client-Cert", "Subject=\"CN=root\"", "X-Forwarded-User", "root"},
	} {
		code, body, seen := r.do(ann, originPath, header...)
		if code != http.StatusOK || !strings.Contains(body, "NodeList") {
			t.Errorf("%s: %d %s", name, code, body)
		}
		want(name, seen)
		if !strings.HasSuffix(seen.Get(hopHeader), r.relay.id) {
			t.Errorf("%s: the hops are %q", name, seen.Get(hopHeader))
		}
	}
	for _, header := range []string{"Impersonate-User", "impersonate-group", "Impersonate-Uid", "IMPERSONATE-EXTRA-SCOPES"} {
		for _, path := range []string{copyPath, originPath} {
			code, body, seen := r.do(ann, path, header, "root")
			if code != http.StatusForbidden || !strings.Contains(body, "cannot impersonate others") || seen != nil {
				t.Errorf("%s of %s: %d %s; the origin saw %v", header, path, code, body, seen)
			}
		}
	}
	if slices.ContainsFunc(r.gate.asked, func(c Caller) bool { return c.Name != "ann" }) {
		t.Errorf("%v", r.gate.asked)
	}
}

// A request with a token is its token's, whatever certificate the connection has: it
// stands for the same caller at the relay and at the origin.
func TestTokenBeforeCertificate(t *testing.T) {
	ca := newAuthority(t)
	r := newCertificateRig(t, Options{ClientCAs: ca.pool, Impersonate: true})
	root := ca.usual("root", "system:masters")
	if code, body, _ := r.do(root, copyPath, "Authorization", "Bearer of tim"); code != http.StatusOK || len(r.gate.asked) != 1 || r.gate.asked[0].Name != "tim" {
		t.Errorf("%d %s, %v", code, body, r.gate.asked)
	}
	for name, header := range map[string][]string{
		"a token":                {"Authorization", "Bearer of tim"},
		"a token, impersonating": {"Authorization", "Bearer of tim", "Impersonate-User", "ann"},
		"a password":             {"Authorization", "Basic eDp5"},
		"no value":               {"Authorization", ""},
		"a token of a WebSocket": {"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.b2YgdGlt"},
	} {
		_, _, seen := r.do(root, originPath, header...)
		if seen == nil || strings.Contains(seen.Get("Authorization"), "relay") || seen.Get("Impersonate-User") == "root" || len(seen.Values("Impersonate-Group")) > 0 {
			t.Errorf("%s: the origin saw %v", name, seen)
		}
		if len(header) == 4 && seen.Get("Impersonate-User") != "ann" {
			t.Errorf("%s: the origin is not told: %v", name, seen)
		}
	}
}

// An open watch ends after the authority of its caller was taken away.
func TestCertificateOfOpenWatch(t *testing.T) {
	var roots atomic.Pointer[x509.CertPool]
	inBubble(t, Options{Gate: &doorman{}, ClientCAs: roots.Load}, func(t *testing.T, r *Relay, _ *apiserver.Server, _ func()) {
		ca := newAuthority(t)
		roots.Store(ca.pool())
		chain, err := x509.ParseCertificate(ca.usual("ann").Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		s := &modelStream{done: make(chan struct{}), header: http.Header{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=0", nil)
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{chain}}
		go func() {
			defer close(s.done)
			r.ServeHTTP(s, request)
		}()
		time.Sleep(25 * time.Second)
		if s.ended() {
			t.Fatal("the watch has ended")
		}
		roots.Store(newAuthority(t).pool())
		time.Sleep(2*askAgain + time.Second)
		if !s.ended() {
			t.Error("the watch is still open")
		}
	})
}

// An upgraded connection has the caller's name too.
func TestImpersonatedUpgrade(t *testing.T) {
	headers := make(chan http.Header, 1)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Clone()
		w.WriteHeader(http.StatusForbidden)
	}))
	defer far.Close()
	origin, err := newOrigin(&rest.Config{Host: far.URL, BearerToken: "of the relay"}, "id", true)
	if err != nil {
		t.Fatal(err)
	}
	defer origin.close()
	req := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/n/pods/p/exec", nil)
	req.Header = http.Header{"Connection": {"Upgrade, Impersonate-User"}, "Upgrade": {"echo"}, "Impersonate-User": {"root"}}
	origin.ServeHTTP(httptest.NewRecorder(), req.WithContext(context.WithValue(req.Context(), onBehalf{}, Caller{Name: "ann"})))
	if seen := <-headers; seen.Get("Authorization") != "Bearer of the relay" || !slices.Equal(seen.Values("Impersonate-User"), []string{"ann"}) || seen.Get("Upgrade") != "echo" {
		t.Errorf("%v", seen)
	}
	answer := httptest.NewRecorder()
	origin.ServeHTTP(answer, req.WithContext(context.WithValue(req.Context(), onBehalf{}, Caller{})))
	if line, _ := bufio.NewReader(answer.Body).ReadString('\n'); answer.Code != http.StatusBadGateway || !strings.Contains(line, "in nobody's name") {
		t.Errorf("%d %s", answer.Code, line)
	}
	if _, err := newOrigin(&rest.Config{Host: far.URL, Impersonate: rest.ImpersonationConfig{UserName: "x"}}, "id", true); err == nil {
		t.Error("a relay that acts as somebody acts as its callers")
	}
}
