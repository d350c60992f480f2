package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/tarnproject/tarn/apiserver"
)

// issuer is an authority that issues client certificates.
type issuer struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	i.root = i.sign(template, template, i.key)
	return i
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (i *issuer) sign(template, parent *x509.Certificate, of *ecdsa.PrivateKey) *x509.Certificate {
	i.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of.Public(), i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		i.t.Fatal(err)
	}
	return certificate
}

// client issues a certificate for a user.
func (i *issuer) client(user string) tls.Certificate {
	i.t.Helper()
	key := newKey(i.t)
	issued := i.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, i.root, key)
	return tls.Certificate{Certificate: [][]byte{issued.Raw}, PrivateKey: key}
}

func (i *issuer) text() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.root.Raw}))
}

// Callers with client certificates are let in by the authorities in a file, or by those of
// the cluster, and nobody else is.
func TestRelayClientCertificates(t *testing.T) {
	known, other := newIssuer(t), newIssuer(t)
	origin, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(origin.Close)
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": known.text()},
	}
	if err := origin.Put(published, pod("web-1", corev1.PodRunning)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	serving, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"relay.crt": string(serving), "relay.key": string(key), "clients.crt": known.text()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, authorities := range []string{filepath.Join(dir, "clients.crt"), "cluster"} {
		app := newRig(t).app(nil, &lockedBuffer{})
		app.connect = func() (*rest.Config, string, error) { return origin.Config(), "default", nil }
		ended := commandUntil(t.Context(), app, regexp.MustCompile(`^Relaying 1 resource of \S+ at (https://\S+/)$`), func(address string) {
			for {
				if status := getWith(t, nil, address+"readyz"); status == http.StatusOK {
					break
				}
			}
			for who, want := range map[*issuer]int{known: http.StatusOK, other: http.StatusUnauthorized} {
				certificate := who.client("ann")
				if status := getWith(t, &certificate, address+"api/v1/pods?resourceVersion=0"); status != want {
					t.Errorf("--client-ca %s: %d, want %d", authorities, status, want)
				}
			}
		}, "relay", "--listen=127.0.0.1:0", "pods", "--drain", "10ms", "--client-ca", authorities,
			"--tls-cert-file", filepath.Join(dir, "relay.crt"), "--tls-private-key-file", filepath.Join(dir, "relay.key"))
		if ended.code != 0 {
			t.Errorf("--client-ca %s ended with\n%s", authorities, ended)
		}
	}
}

// getWith asks with a client certificate, or without, and returns the code of the answer.
func getWith(t *testing.T, certificate *tls.Certificate, address string) int {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // who serves is not what is tested
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
