package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// Names of checks that others need.
const (
	checkDNS            = "dns"
	checkTCP            = "tcp"
	checkTLS            = "tls"
	checkAuthentication = "authentication"
)

// certificateWarning is how long before a server's certificate expires the warnings begin.
const certificateWarning = 7 * 24 * time.Hour

// way is the connection to a server: the dialed address, and what is known about it.
type way struct {
	server *url.URL
	// proxy is nil for a direct connection.
	proxy *url.URL
	// opaque says that the config makes connections in its own way.
	opaque bool
}

func wayTo(cfg *rest.Config) (*way, error) {
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	w := &way{server: server, opaque: cfg.Transport != nil || cfg.Dial != nil}
	find := cfg.Proxy
	if find == nil {
		find = http.ProxyFromEnvironment
	}
	w.proxy, err = find(&http.Request{URL: server})
	return w, err
}

// end is the other end of the connection.
func (w *way) end() *url.URL {
	if w.proxy != nil {
		return w.proxy
	}
	return w.server
}

// port returns the port of a URL, whether the URL names it or not.
func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	switch u.Scheme {
	case "http":
		return "80"
	case "socks5", "socks5h":
		return "1080"
	}
	return "443"
}

// Network checks names, connections and certificates on the way to a server.
func (d *Doctor) Network(ctx context.Context, cfg *rest.Config, needs ...string) {
	var w *way
	d.Check(ctx, checkDNS, needs, func(ctx context.Context) (r Result) {
		var err error
		if w, err = wayTo(cfg); err != nil {
			return fail("check --server, --proxy-url and the cluster in the kubeconfig", "the address of the server is wrong: %v", err)
		}
		return w.resolve(ctx)
	})
	d.Check(ctx, checkTCP, []string{checkDNS}, func(ctx context.Context) Result { return w.connect(ctx) })
	d.Check(ctx, checkTLS, []string{checkDNS, checkTCP}, func(ctx context.Context) Result { return w.handshake(ctx, cfg) })
}

func (w *way) resolve(ctx context.Context) Result {
	host := w.end().Hostname()
	switch {
	case w.opaque:
		return skip("the config makes its connections in its own way")
	case net.ParseIP(host) != nil:
		return ok("%s is an address", host)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return fail("check --server, --proxy-url and the resolver of this machine", "%s has no address: %v", host, cause(ctx, err))
	}
	slices.Sort(addresses)
	return ok("%s is %s", host, strings.Join(addresses, ", "))
}

func (w *way) connect(ctx context.Context) Result {
	if w.opaque {
		return skip("the config makes its connections in its own way")
	}
	u := w.end()
	address := net.JoinHostPort(u.Hostname(), port(u))
	begun := time.Now()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		advice := "check the network, firewalls and --server"
		if errors.Is(err, syscall.ECONNREFUSED) {
			advice = "is the server running, and is --server right?"
		}
		if op := new(net.OpError); errors.As(err, &op) {
			err = op.Err
		}
		return fail(advice, "%s cannot be reached: %v", address, cause(ctx, err))
	}
	took := time.Since(begun)
	conn.Close()
	what := ""
	if w.proxy != nil {
		what = ", the proxy on the way to " + w.server.Host
	}
	return ok("%s answers in %s%s", address, took.Round(100*time.Microsecond), what)
}

func (w *way) handshake(ctx context.Context, cfg *rest.Config) Result {
	switch {
	case w.opaque:
		return skip("the config makes its connections in its own way")
	case w.server.Scheme != "https":
		return warn("use https unless the server is on this machine", "the address is %s: the connection is not encrypted", w.server.Scheme)
	case w.proxy != nil:
		return skip("the proxy leads to the server; the requests below go through it")
	}
	config, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return fail("check the certificates in the kubeconfig, --certificate-authority, --client-certificate and --client-key", "the certificates cannot be used: %v", err)
	}
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = w.server.Hostname()
	}
	dialer := &tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(w.server.Hostname(), port(w.server)))
	if err != nil {
		return fail(certificateAdvice(err), "%v", cause(ctx, err))
	}
	defer conn.Close()
	return describe(conn.(*tls.Conn).ConnectionState(), config.InsecureSkipVerify, time.Now())
}

func certificateAdvice(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "check the cluster's certificate-authority in the kubeconfig, or --certificate-authority; if the cluster was created again, fetch its kubeconfig again"
	case errors.As(err, &host):
		return "use a name that the certificate has as --server, or name it with --tls-server-name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the server's certificate, and check the clock of this machine"
	}
	return "check that --server is the TLS port of an API server"
}

func describe(state tls.ConnectionState, insecure bool, now time.Time) Result {
	until := ""
	if len(state.PeerCertificates) > 0 {
		end := state.PeerCertificates[0].NotAfter
		until = fmt.Sprintf(", certificate until %s", end.UTC().Format(time.DateOnly))
		if left := end.Sub(now); left < certificateWarning && !insecure {
			return warn("renew the server's certificate", "%s%s", tls.VersionName(state.Version), until)
		}
	}
	if insecure {
		return warn("remove insecure-skip-tls-verify, and name the cluster's certificate-authority", "%s, but the certificate is not verified", tls.VersionName(state.Version))
	}
	return ok("%s%s", tls.VersionName(state.Version), until)
}
