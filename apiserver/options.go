package apiserver

import "time"

// Options shape a [Server]. The zero value is a good choice.
type Options struct {
	// Address is where [Start] listens; a free port of 127.0.0.1 if empty. Any
	// address that is not a loopback one needs TLS and Tokens.
	Address string
	// TLS makes [Start] serve HTTPS with a certificate that is made at the start,
	// which [Server.Config] and [Server.Kubeconfig] trust.
	TLS bool
	// Tokens are the accepted bearer tokens; without any, everyone is accepted.
	// [Server.SetTokens] replaces them.
	Tokens []string

	// AnyNamespace accepts objects in namespaces that do not exist. The real
	// server answers that the namespace was not found.
	AnyNamespace bool

	// HistorySize is how many changes of each resource are remembered for
	// watches and lists of the past; 10,000 if 0. A watcher that is further
	// behind is closed.
	HistorySize int
	// HistoryBytes is how much the remembered changes of each resource may take; 64
	// MiB if 0. The newest one is remembered in any case.
	HistoryBytes int64
	// HistoryAge is for how long they are remembered; 5 min if 0.
	HistoryAge time.Duration
	// BookmarkInterval is how often a watch that allows bookmarks gets one; 1 min
	// if 0. It also gets one before its timeout.
	BookmarkInterval time.Duration
	// WriteTimeout is how long a client may read nothing before its answer is cut off;
	// 30 s if 0.
	WriteTimeout time.Duration
	// ClientConnections is how many connections one address may have open to a
	// server that listens; 5,000 if 0.
	ClientConnections int
	// CacheBytes bounds what is kept of encodings beside the state itself;
	// 256 MiB if 0.
	CacheBytes int64
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.HistorySize <= 0 {
		o.HistorySize = 10_000
	}
	if o.HistoryBytes <= 0 {
		o.HistoryBytes = 64 << 20
	}
	if o.ClientConnections <= 0 {
		o.ClientConnections = 5000
	}
	if o.HistoryAge <= 0 {
		o.HistoryAge = 5 * time.Minute
	}
	if o.BookmarkInterval <= 0 {
		o.BookmarkInterval = time.Minute
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 256 << 20
	}
	return o
}
