package relay

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// While no authorities are known, no certificate is accepted, also not one of an authority that
// the machine trusts for servers.
func TestNoAuthorities(t *testing.T) {
	public := newAuthority(t)
	file := filepath.Join(t.TempDir(), "trusted.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public.certificate.Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	r := newCertificateRig(t, Options{ClientCAs: func() *x509.CertPool { return nil }, Impersonate: true})
	for _, path := range []string{copyPath, originPath} {
		code, body, seen := r.do(public.usual("ann", "admins"), path)
		if code != http.StatusUnauthorized || seen != nil {
			t.Errorf("%s: %d %s, as %v", path, code, body, seen["Impersonate-User"])
		}
	}
}
