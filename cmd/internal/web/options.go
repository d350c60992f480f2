package web

import (
	"log/slog"
	"net/http"
	"time"
)

// DefaultAddress is where [Listen] listens by default. The port spells "tarn" on a telephone.
const DefaultAddress = "127.0.0.1:8276"

// Options shape a [Site]. The zero value is a good choice on one's own machine: it
// makes a token, and [Server.SignInURL] is the link that signs in.
type Options struct {
	// Name names what is mirrored, for the page's title: a context, a cluster.
	Name string

	// Address is where [Listen] listens; [DefaultAddress] if empty. Any address
	// that is not a loopback one needs CertFile and KeyFile, and a Token or
	// TokenFile.
	Address string
	// CertFile and KeyFile make Listen serve HTTPS. They are read again when they
	// change.
	CertFile, KeyFile string
	// Hosts are further host names of the page, beside those of this machine's
	// loopback and those in the certificate.
	Hosts []string

	// Token is needed for everything but the page's own files and the probes. It must
	// have 16 characters or more.
	Token string
	// TokenFile has the token instead. It is read again when it changes, which
	// ends all sessions.
	TokenFile string
	// Anonymous serves without a token, to everybody who can reach the address,
	// including other users of the machine. It is for loopback addresses, and for a
	// Site behind an authenticating proxy.
	Anonymous bool
	// SessionLife is how long a session of the page lasts; 12 h if 0.
	SessionLife time.Duration
	// ClientConnections is how many connections one address may have open at a
	// time; 256 if 0.
	ClientConnections int

	// ShowSecrets shows the values of Secrets, as far as the mirror has kept
	// them.
	ShowSecrets bool
	// Profiles serves /debug/pprof.
	Profiles bool
	// FreshWithin is how old the last contact with the server may be for /readyz to
	// succeed; 3 min if 0. A server sends a bookmark about once a minute when
	// nothing else happens.
	FreshWithin time.Duration
	// Metrics answers /metrics; if nil, with the metrics of the mirror's Collector
	// and of Go.
	Metrics http.Handler
	// Logger is the log; slog.Default if nil.
	Logger *slog.Logger
	// AccessLog gets a line per request: sender, path and answer. If it is nil, there
	// is no access log.
	AccessLog *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.SessionLife == 0 {
		o.SessionLife = 12 * time.Hour
	}
	if o.ClientConnections == 0 {
		o.ClientConnections = 256
	}
	if o.FreshWithin == 0 {
		o.FreshWithin = 3 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
