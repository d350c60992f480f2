package apiserver

import (
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Reader answers gets, lists and watches of one resource out of a [State], in every
// format that clients may ask for. It is the reading side of the embedded server, for
// other programs that have objects to serve.
//
// It checks no rights.
type Reader struct {
	of        *endpoint
	state     State
	options   ReaderOptions
	encodings *encodings
	shared    *sharedFrames

	events, slowClients atomic.Int64
}

// Sent is what a [Reader] has sent to watches so far.
type Sent struct {
	// Events does not include bookmarks and errors.
	Events int64
	// SlowClients were disconnected because they did not read for the write timeout.
	SlowClients int64
}

// Sent returns the counters of the reader.
func (s *Reader) Sent() Sent {
	return Sent{Events: s.events.Load(), SlowClients: s.slowClients.Load()}
}

// ReaderOptions shape a [Reader]. Zero values are those of [Options].
type ReaderOptions struct {
	// BookmarkInterval is how often a watch that allows bookmarks gets one; 1 min if 0.
	// It also gets one before its timeout.
	BookmarkInterval time.Duration
	// WriteTimeout is how long a client may read nothing before its answer is cut off;
	// 30 s if 0.
	WriteTimeout time.Duration
	// CacheBytes bounds the encodings that are kept beside the objects; 256 MiB if 0.
	CacheBytes int64
	// OwnConnections lets a watch over HTTP/1.1 take its connection over from the
	// http.Server, and close it at its end. That saves almost half of the CPU of a
	// delivery. The server's Close then does not end such watches: end the contexts of
	// their requests, or the watches of the [State].
	OwnConnections bool
}

// NewReader returns a reader of a state, whose objects were made by the resource.
func NewReader(of *Resource, state State, options ReaderOptions) *Reader {
	all := Options{BookmarkInterval: options.BookmarkInterval, WriteTimeout: options.WriteTimeout, CacheBytes: options.CacheBytes}.withDefaults()
	r := &Reader{of: of.endpoint, state: state, options: all.reader(), encodings: &encodings{most: all.CacheBytes}, shared: &sharedFrames{}}
	r.options.OwnConnections = options.OwnConnections
	return r
}

func (o Options) reader() ReaderOptions {
	return ReaderOptions{BookmarkInterval: o.BookmarkInterval, WriteTimeout: o.WriteTimeout, CacheBytes: o.CacheBytes}
}

// Serve answers a request whose path leads to the resource. An error means that nothing
// was written: answer with [SendError], or in another way.
func (s *Reader) Serve(w http.ResponseWriter, r *http.Request, to Target) error {
	open, err := s.Begin(w, r, to)
	if open != nil {
		open.Run()
	}
	return err
}

// Begin is Serve for callers who run watches by themselves: it returns a watch that was
// opened, whose head has been sent. Everything else is answered when it returns.
func (s *Reader) Begin(w http.ResponseWriter, r *http.Request, to Target) (*OpenWatch, error) {
	req := &request{Request: r, target: to.target(), endpoint: s.of, w: w}
	if !req.fits() || to.Subresource != "" {
		return nil, generic(http.StatusNotFound)
	}
	if r.Method != http.MethodGet {
		return nil, generic(http.StatusMethodNotAllowed)
	}
	var err error
	if req.answer, err = negotiate(r, req.suits); err != nil {
		return nil, err
	}
	return s.read(req)
}

// read answers a get or a list, or opens a watch.
func (s *Reader) read(r *request) (*OpenWatch, error) {
	if err := r.checkTable(); err != nil {
		return nil, err
	}
	verb := r.verb(r.URL.Query())
	if verb == "watch" {
		return s.watch(r)
	}
	r.w = newLimited(r.w, s.options.WriteTimeout)
	if verb == "list" {
		return nil, s.list(r)
	}
	return nil, s.get(r)
}

// get reads one object.
func (s *Reader) get(r *request) error {
	text := r.URL.Query().Get("resourceVersion")
	version, err := parseVersion(text)
	if err != nil {
		return internal(err)
	}
	at := At{Match: NotOlder, Version: version}
	if text == "" {
		at.Match = Latest
	}
	found, err := s.state.Get(r.Context(), r.key(), at)
	if err != nil {
		return err
	}
	if found == nil {
		return apierrors.NewNotFound(r.groupResource(), r.name)
	}
	return s.sendObject(r, http.StatusOK, found)
}

// sendObject answers with one object.
func (s *Reader) sendObject(r *request, code int, e *Object) error {
	if r.answer.shape == table {
		return s.sendTable(r, code, []*Object{e}, metav1.ListMeta{ResourceVersion: versionText(e.version)})
	}
	data, err := s.encodings.of(e, r.form())
	if err != nil {
		return err
	}
	r.send(code, r.form().kind(), data)
	return nil
}

// SendError answers with an error as API servers do, in a format that the client accepts.
func SendError(w http.ResponseWriter, r *http.Request, err error) { sendError(w, r, err) }

// TooLarge is the status for a version that has not been reached.
func TooLarge(version, current int64) error { return tooLarge(version, current) }

// TooOld is the status that ends a watch from a version whose changes are no longer
// known.
func TooOld(version, floor int64) error { return tooOld(version, floor) }
