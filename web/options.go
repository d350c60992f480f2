package web

import (
	"log/slog"
	"net/http"
	"time"
)

// DefaultAddress is where [Listen] listens if nothing else is said. The port is
// "tarn" on a telephone.
const DefaultAddress = "127.0.0.1:8276"

// Options shape a [Site]. The zero value is a good choice on one's own machine.
type Options struct {
	// Name is what is mirrored, for the page's title: a context, a cluster.
	Name string

	// Address is where [Listen] listens; [DefaultAddress] if empty. Any address
	// that is not a loopback one needs CertFile, KeyFile and Token.
	Address string
	// CertFile and KeyFile make Listen serve HTTPS.
	CertFile, KeyFile string
	// Token is what everybody must show who wants more than to know whether the
	// program lives. Everybody is let in if it is empty.
	Token string
	// Hosts are names by which the page may be asked for, beside those of this
	// machine's loopback and those in the certificate.
	Hosts []string

	// ShowSecrets shows the values of Secrets, as far as the mirror has kept
	// them.
	ShowSecrets bool
	// Profiles serves /debug/pprof.
	Profiles bool
	// FreshWithin is how old the last word from the server may be for /readyz to
	// say yes; 3 min if 0. A server sends a bookmark about once a minute when
	// nothing else happens.
	FreshWithin time.Duration
	// Metrics answers /metrics; if nil, with what the mirror's Collector and Go
	// itself tell.
	Metrics http.Handler
	// Logger takes what there is to say; slog.Default if nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.FreshWithin == 0 {
		o.FreshWithin = 3 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
