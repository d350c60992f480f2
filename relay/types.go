package relay

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Options say what a [Relay] serves, from where, and to whom.
type Options struct {
	// Config is for the origin: an API server, or another relay. Its credentials are the
	// relay's own. They must be allowed to list and watch the resources, and, unless Gate
	// is set, to create tokenreviews and subjectaccessreviews. A Transport in it is not
	// used for requests that are passed on: it might add credentials.
	Config *rest.Config
	// Resources are served from copies, in the API version that clients use. For a custom
	// resource its definition is watched too; for that the credentials need the right to
	// list and watch customresourcedefinitions.
	Resources []schema.GroupVersionResource
	// Namespaces are the namespaces to copy; all if empty. If it is set, a request across
	// all namespaces is refused, and one for another namespace goes to the origin. So does
	// a request across all namespaces without credentials.
	Namespaces []string
	// Gate decides who may read; by the origin's reviews if nil.
	Gate Gate
	// ClientCAs returns the authorities whose client certificates name callers, as the
	// API server's --client-ca-file does: the common name is the user, the organizations
	// are its groups. It is called often, and may return other authorities when their
	// file has changed; while it returns nil, no certificate is accepted. If ClientCAs is nil,
	// certificates are ignored. The server's TLS config has to ask for them
	// (tls.RequestClientCert); the relay verifies them.
	ClientCAs func() *x509.CertPool
	// Impersonate passes requests of callers with certificates on in the caller's name,
	// with the relay's own credentials. The relay needs the right to impersonate. Without
	// it, such requests are refused.
	Impersonate bool

	// LogBytes bounds the memory of the past of each resource, 64 MiB if 0, and LogAge
	// its age, one hour if 0. A client that was disconnected for longer has to list.
	LogBytes int64
	LogAge   time.Duration
	// Directory, if set, is where content and past are kept too: the relay starts with
	// them, without reading the resources from the origin, and watches may begin at
	// versions as old as the past there. DirectoryBytes bounds the past of each resource,
	// 4 GiB if 0, and DirectoryAge its age, a day if 0. One relay at a time may use a
	// directory.
	Directory      string
	DirectoryBytes int64
	DirectoryAge   time.Duration
	// FreshWithin is how old a copy may be before the relay is not ready; 3 min if 0.
	FreshWithin time.Duration
	// CallerWatches is how many watches one caller may have open, 10,000 if 0, and
	// CallerRequests how many other requests in flight, 200 if 0.
	CallerWatches, CallerRequests int
	// WriteTimeout is how long a client may read nothing before its answer is cut off; 30 s
	// if 0.
	WriteTimeout time.Duration
	// OwnConnections lets watches over HTTP/1.1 take their connections over from the
	// http.Server, which saves almost half of the CPU of a delivery. They end when Run
	// does, and no longer by the server's Close.
	OwnConnections bool
	// DrainTime is the time over which watches are closed when the relay stops, so that
	// their clients do not all move to the next relay at once. Other requests may take as
	// long. 5 s if 0.
	DrainTime time.Duration

	// Audit is called once for each request that was answered from a copy, before the
	// answer. It must return soon.
	Audit func(Access)
	// Logger logs everything that has no handler; slog.Default if nil.
	Logger *slog.Logger
}

// A Gate decides who may read from the copies. Requests that go to the origin do not pass
// it: the origin decides about them.
//
//   - Both methods are called by many goroutines, for every request, and again for
//     watches that are open; they should remember answers for some seconds.
//   - An error that is an API status is sent to the client.
type Gate interface {
	// Caller says who makes a request.
	Caller(r *http.Request) (Caller, error)
	// Allow returns nil if the access is allowed.
	Allow(ctx context.Context, a Access) error
}

// A Caller is the user of a request, as the origin identifies it.
type Caller struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// An Access is a read of a resource by a caller.
type Access struct {
	Caller    Caller
	Verb      string // get, list or watch
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
	// LabelSelector and FieldSelector are as the request has them. They are empty where API
	// servers do not show them to authorizers: for a get, and on the old paths of watches, such as
	// /api/v1/watch/pods.
	LabelSelector, FieldSelector string
	// From is the address that the request came from.
	From string
}
