package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// ExposedError says that an address can be reached from other machines and that
// what protects it is missing.
type ExposedError struct {
	Address string
	// NoTLS and WeakToken are what is missing: a certificate with its key, and a
	// token of at least 16 characters.
	NoTLS, WeakToken bool
}

func (e *ExposedError) Error() string {
	var missing []string
	if e.NoTLS {
		missing = append(missing, "a certificate and its key")
	}
	if e.WeakToken {
		missing = append(missing, fmt.Sprintf("a token of %d or more characters", minToken))
	}
	return fmt.Sprintf("web: %s can be reached from other machines, and %s missing: give it, or listen on 127.0.0.1", e.Address, plural(missing))
}

func plural(missing []string) string {
	if len(missing) > 1 {
		return strings.Join(missing, " and ") + " are"
	}
	return strings.Join(missing, "") + " is"
}

// Server is a [Site] that listens.
type Server struct {
	site     *Site
	listener net.Listener
	// certificate is nil for a server without TLS.
	certificate *reloaded[*tls.Certificate]
	server      *http.Server
}

// Listen opens the address of the options. An address that is not a loopback address needs
// TLS and a token from the options; without them, the error is an [ExposedError].
func Listen(m *mirror.Mirror, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.Check(); err != nil {
		return nil, err
	}
	site, err := New(m, opts)
	if err != nil {
		return nil, err
	}
	return listen(site, opts)
}

func listen(site *Site, opts Options) (*Server, error) {
	certificate, err := opts.certificate()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", opts.Address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("web: %s is taken by another program (%w): stop that, or choose another port; 0 is any free one", opts.Address, syscall.EADDRINUSE)
	case err != nil:
		return nil, fmt.Errorf("web: cannot listen on %s: %w", opts.Address, err)
	}
	s := &Server{site: site, listener: listener, certificate: certificate}
	if certificate := s.certificate; certificate != nil {
		site.guard.certificate = certificate.get
		s.listener = tls.NewListener(listener, &tls.Config{
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.get(), nil },
			MinVersion:     tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		})
	}
	s.server = &http.Server{
		Handler: site, MaxHeaderBytes: 32 << 10, ErrorLog: slogLogger(opts.Logger),
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100},
	}
	site.guard.connections = newConnections(opts.ClientConnections)
	site.guard.connections.watch(s.server)
	return s, nil
}

// The server closes a connection that does not send a header, a body or the next request
// within these times. Accepted requests have deadlines of their own; see limitBodyTime.
const (
	headerTime = 5 * time.Second
	bodyTime   = 20 * time.Second
	idleTime   = time.Minute
)

// Check returns the error that Listen would return for the options, before there is a mirror.
func (o Options) Check() error {
	o = o.withDefaults()
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("web: %q is not an address: write host:port, such as %s", o.Address, DefaultAddress)
	}
	if _, err := o.certificate(); err != nil {
		return err
	}
	if loopback := host == "localhost" || net.ParseIP(host).IsLoopback(); !loopback {
		e := &ExposedError{o.Address, o.CertFile == "", o.TokenFile == "" && len(o.Token) < minToken}
		if e.NoTLS || e.WeakToken {
			return e
		}
	}
	_, err = o.newToken()
	return err
}

// certificate reads the files, nil if there are none. The leaf has the names of the
// server.
func (o Options) certificate() (*reloaded[*tls.Certificate], error) {
	if o.CertFile == "" && o.KeyFile == "" {
		return nil, nil
	}
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("web: the certificate %q and its key %q cannot be used: %w", o.CertFile, o.KeyFile, err)
		}
		return &pair, nil
	}
	return newReloaded(read, func(err error) {
		o.Logger.Error("the certificate has changed and cannot be used; the one before stays", "error", err)
	}, o.CertFile, o.KeyFile)
}

// URL is the address of the page from this machine.
func (s *Server) URL() string {
	scheme := "http"
	if s.certificate != nil {
		scheme = "https"
	}
	host, port, _ := net.SplitHostPort(s.listener.Addr().String())
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// SignInURL is a link that signs in, if the site made its own token; see
// [Site.SignInPath]. The token is in the fragment, which browsers do not send.
func (s *Server) SignInURL() string { return strings.TrimSuffix(s.URL(), "/") + s.site.SignInPath() }

// Site is the served site.
func (s *Server) Site() *Site { return s.site }

// Serve answers until ctx ends, then gives running requests a moment to finish. It returns
// nil if ctx ended it. It can be called once.
func (s *Server) Serve(ctx context.Context) error {
	s.server.BaseContext = func(net.Listener) context.Context { return ctx }
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if s.server.Shutdown(grace) != nil {
			s.server.Close()
		}
	})
	err := s.server.Serve(s.listener)
	if !unwatch() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("web: %w", err)
}

// Close stops listening, for a server that is never served.
func (s *Server) Close() error { return s.listener.Close() }

// slogLogger receives the log messages of net/http, mostly about failed handshakes.
func slogLogger(logger *slog.Logger) *log.Logger {
	return slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
}
