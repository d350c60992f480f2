package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// AdminToken is of a user who may do everything.
	AdminToken = "admin-token"
	// GuestToken is of the user [Guest].
	GuestToken = "guest-token"
	// Guest may do nothing but what a test grants.
	Guest = "guest"
)

// credentials are the files that the programs know each other by.
type credentials struct {
	certificate, key  string // of the API server; the certificate is its own authority
	serviceAccountKey string // signs and verifies the tokens of service accounts
	tokens            string // the users with a fixed token
	authority         []byte // the content of certificate
}

func newCredentials(t testing.TB, dir string) credentials {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	signing, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return credentials{
		certificate:       write("apiserver.crt", certificate),
		key:               write("apiserver.key", key),
		serviceAccountKey: write("service-account.key", signing),
		tokens: write("tokens.csv", fmt.Appendf(nil, "%s,admin,admin-uid,system:masters\n%s,%s,guest-uid\n",
			AdminToken, GuestToken, Guest)),
		authority: certificate,
	}
}
