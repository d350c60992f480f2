package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExposed(t *testing.T) {
	cert, key, _ := certificate(t)
	for _, test := range []struct {
		name string
		opts Options
		want string
	}{
		{"the default", Options{}, ""},
		{"any loopback", Options{Address: "127.9.9.9:1"}, ""},
		{"IPv6 loopback", Options{Address: "[::1]:1"}, ""},
		{"by name", Options{Address: "localhost:0"}, ""},
		{"everywhere", Options{Address: "0.0.0.0:0"}, "a certificate and its key and a token of 16 or more characters are missing"},
		{"everywhere in short", Options{Address: ":0"}, "are missing"},
		{"an address", Options{Address: "10.0.0.1:0", Token: testToken}, "a certificate and its key is missing"},
		{"a name", Options{Address: "example.com:0", CertFile: cert, KeyFile: key}, "a token of 16 or more characters is missing"},
		{"a short token", Options{Address: "0.0.0.0:0", CertFile: cert, KeyFile: key, Token: "123456789"}, "a token of 16 or more characters is missing"},
		{"all that is needed", Options{Address: "0.0.0.0:0", CertFile: cert, KeyFile: key, Token: testToken}, ""},
		{"everywhere, for everybody", Options{Address: "0.0.0.0:0", CertFile: cert, KeyFile: key, Anonymous: true}, "a token of 16 or more characters is missing"},
		{"on loopback, for everybody", Options{Anonymous: true}, ""},
		{"no port", Options{Address: "localhost"}, "write host:port"},
		{"a certificate without its key", Options{CertFile: cert}, "cannot be used"},
		{"a certificate that is none", Options{CertFile: key, KeyFile: key}, "cannot be used"},
	} {
		err := test.opts.Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	r := newRig(t, rigOptions{})
	var exposed *ExposedError
	if _, err := Listen(r.mirror, Options{Address: "0.0.0.0:0"}); !errors.As(err, &exposed) || !exposed.NoTLS || !exposed.WeakToken {
		t.Errorf("Listen: %v", err)
	}
}

func TestPortTaken(t *testing.T) {
	r := newRig(t, rigOptions{})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Listen(r.mirror, Options{Address: taken.Addr().String()})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "is taken by another program") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// Over TLS the page can be asked for by the names of the certificate, and what
// is under way ends with the context.
func TestServe(t *testing.T) {
	cert, key, roots := certificate(t)
	r := newRig(t, rigOptions{})
	server, err := Listen(r.mirror, Options{Address: "0.0.0.0:0", CertFile: cert, KeyFile: key, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(server.URL(), "https://"), "/"))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "tarn.test"}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ask := func(path, host string, bearer bool) *http.Response {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://127.0.0.1:"+port+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		if bearer {
			request.Header.Set("Authorization", "Bearer "+testToken)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for name, want := range map[string]int{"tarn.test": 200, "tarn.test:" + port: 200, "a.wild.test": 200, "evil.test": 403, "a.b.wild.test": 403, "10.1.1.1": 200, "10.1.1.2": 403} {
		answer := ask("/", name, false)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("Host %s: %d, want %d", name, answer.StatusCode, want)
		}
	}
	stream := ask("/api/events", "tarn.test", true)
	if stream.StatusCode != http.StatusOK || stream.ProtoMajor != 2 {
		t.Errorf("%d by HTTP/%d", stream.StatusCode, stream.ProtoMajor)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	stream.Body.Close()
	if _, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second); err == nil {
		t.Error("it still listens")
	}
}

// certificate makes one for the occasion.
func certificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"tarn.test", "*.wild.test"}, IPAddresses: []net.IP{net.ParseIP("10.1.1.1")}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile = filepath.Join(t.TempDir(), "crt"), filepath.Join(t.TempDir(), "key")
	if os.WriteFile(certFile, certPEM, 0o600) != nil || os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encodedKey}), 0o600) != nil {
		t.Fatal("the certificate cannot be written")
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, roots
}
