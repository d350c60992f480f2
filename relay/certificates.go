package relay

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// certificates finds the caller whose client certificate a request was made with.
//
// A certificate counts only for a request that has no credentials in its headers. The
// origin sees those headers and not the certificate, so a request with both would be one
// user's here and another one's there.
//
// A certificate is verified for each request and not for the connection. A connection
// stays open for days; a certificate that ends, and an authority that is replaced, count
// within 20 seconds, for open watches too.
type certificates struct {
	// roots are the authorities; nil if certificates do not count.
	roots func() *x509.CertPool
	known answerCache[[sha256.Size]byte, Caller]
}

// authenticated is the group that every caller with a name has.
const authenticated = "system:authenticated"

// caller returns false for a request without a certificate that counts.
func (c *certificates) caller(req *http.Request) (Caller, bool, error) {
	if c.roots == nil || req.TLS == nil || len(req.TLS.PeerCertificates) == 0 || hasCredentials(req) {
		return Caller{}, false, nil
	}
	chain := req.TLS.PeerCertificates
	digest := sha256.New()
	for _, certificate := range chain {
		digest.Write(certificate.Raw)
	}
	caller, err := c.known.get(req.Context(), [sha256.Size]byte(digest.Sum(nil)), func(context.Context) (Caller, error) {
		return verify(chain, c.roots())
	})
	return caller, err == nil, err
}

// hasCredentials says whether the headers of a request carry credentials. Browsers put a
// token into the protocols of a WebSocket.
func hasCredentials(req *http.Request) bool {
	return len(req.Header.Values("Authorization")) > 0 ||
		strings.Contains(strings.Join(req.Header.Values("Sec-WebSocket-Protocol"), ","), "bearer.authorization.k8s.io")
}

// verify returns the user of a certificate as the API server would name it: the common name
// is the user, the organizations are its groups.
func verify(chain []*x509.Certificate, roots *x509.CertPool) (Caller, error) {
	leaf, between := chain[0], x509.NewCertPool()
	if roots == nil { // would mean those that the machine trusts for servers
		return Caller{}, apierrors.NewUnauthorized(fmt.Sprintf("the client certificate of %q is not accepted: no authorities are known", leaf.Subject.CommonName))
	}
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return Caller{}, apierrors.NewUnauthorized(fmt.Sprintf("the client certificate of %q is not accepted: %v", leaf.Subject.CommonName, err))
	}
	// A name is sent on as a header, which loses spaces at its ends.
	for _, name := range append([]string{leaf.Subject.CommonName}, leaf.Subject.Organization...) {
		if name == "" || name != strings.TrimSpace(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return Caller{}, apierrors.NewUnauthorized(fmt.Sprintf("the client certificate names the user or group %q; a name is not empty, and has no spaces at its ends and no control characters", name))
		}
	}
	groups := append([]string{}, leaf.Subject.Organization...)
	return Caller{Name: leaf.Subject.CommonName, Groups: append(groups, authenticated)}, nil
}
