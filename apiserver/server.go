package apiserver

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Server is an API server with a state of its own, in memory.
//
//   - It may be used by any number of clients at once, over HTTP and in Go.
//   - A write is seen by every read and list that begins after its answer, and
//     by every watch, in one order for all.
//   - What follows from a write (a namespace is emptied, a definition is served)
//     has been done when it is answered.
//   - [Server.Close] ends it and all that it started.
type Server struct {
	options Options
	// tokens are those that are let in; nil means everybody.
	tokens    atomic.Pointer[[]string]
	state     *state
	encodings *encodings
	shared    *sharedFrames
	catalog   atomic.Pointer[catalog]

	// defining guards custom, and is held while a new catalog is made.
	defining sync.Mutex
	builtin  []*resource
	custom   []*resource

	namespaces, definitions *endpoint

	// ctx ends when the server is closed. serving counts what has to end then;
	// admission is held while it grows, and while the server is closed.
	ctx       context.Context
	cancel    context.CancelFunc
	admission sync.Mutex
	serving   sync.WaitGroup

	// Of a server that listens:
	listener  net.Listener
	http      *http.Server
	authority []byte
}

// New makes a server that does not listen: it is an [http.Handler], and
// [Server.Config] is for clients in the same process.
func New(options Options) *Server {
	s := &Server{options: options.withDefaults(), builtin: builtins()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if len(options.Tokens) > 0 {
		s.SetTokens(options.Tokens...)
	}
	s.state = newState(s.options)
	s.encodings, s.shared = &encodings{most: s.options.CacheBytes}, &sharedFrames{}
	for _, r := range s.builtin {
		s.state.collections[r.content] = true
	}
	s.catalog.Store(newCatalog(s.builtin, nil))
	s.namespaces = s.catalog.Load().forKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	s.definitions = s.catalog.Load().forKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	for _, name := range initialNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		namespace.SetGroupVersionKind(s.namespaces.gvk())
		if _, err := s.add(s.namespaces, "", namespace, writeMode{}); err != nil {
			panic(err) // the first objects of an empty server cannot be in anybody's way
		}
	}
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		sendError(w, r, fault(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server has been closed"))
		return
	}
	defer s.serving.Done()
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == "/healthz" || path == "/readyz" || path == "/livez" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
		return
	}
	if err := s.authenticate(r); err != nil {
		sendError(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r = r.WithContext(ctx)
	if !s.serveDocument(w, r, path) {
		s.serveObjects(w, r, path)
	}
}

// enter counts something that the server does; false if it does nothing more.
func (s *Server) enter() bool {
	s.admission.Lock()
	defer s.admission.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.serving.Add(1)
	return true
}

// serveObjects answers what is about objects.
func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request, path string) {
	to, ok := parsePath(path)
	catalog := s.catalog.Load()
	if !ok || !catalog.has(to.gv) {
		if to.gv.Version != "" && s.review(w, r, to) {
			return
		}
		http.NotFound(w, r)
		return
	}
	req := &request{Request: r, target: to, endpoint: catalog.endpoints[to.gv.WithResource(to.plural)], w: w}
	if req.endpoint == nil || !req.fits() || !req.hasSubresource() {
		sendError(w, r, generic(http.StatusNotFound))
		return
	}
	handle := s.handler(req)
	if handle == nil {
		sendError(w, r, generic(http.StatusMethodNotAllowed))
		return
	}
	var err error
	suits := req.suits
	if req.sub == "scale" {
		suits = scales.suitsScale
	}
	if req.answer, err = negotiate(r, suits); err != nil {
		sendError(w, r, err)
		return
	}
	if err := handle(req); err != nil {
		sendError(w, r, err)
	}
}

// hasSubresource says whether the subresource exists.
func (r *request) hasSubresource() bool {
	switch r.sub {
	case "":
		return true
	case "status":
		return r.status
	case "finalize":
		return r.isNamespaces()
	case "binding":
		return r.binds()
	case "scale":
		return r.scalable()
	}
	return false
}

// handler finds out what a request wants done; nil if that cannot be.
func (s *Server) handler(r *request) func(*request) error {
	switch {
	case r.sub == "binding":
		if r.Method == http.MethodPost {
			return s.bind
		}
		return nil
	case r.sub == "scale":
		return map[string]func(*request) error{
			http.MethodGet: s.getScale, http.MethodPut: s.updateScale, http.MethodPatch: s.patchScale,
		}[r.Method]
	case r.Method == http.MethodGet:
		return s.read
	case r.Method == http.MethodPut && r.name != "":
		return s.update
	case r.Method == http.MethodPatch && r.name != "":
		return s.patch
	case r.sub != "":
		return nil
	case r.Method == http.MethodPost && r.name == "" && r.namespaced == (r.namespace != ""):
		return s.create
	case r.Method == http.MethodDelete && r.name != "":
		return s.delete
	case r.Method == http.MethodDelete && !r.isNamespaces() && r.namespaced == (r.namespace != ""):
		return s.deleteCollection
	}
	return nil
}

// read answers from the state.
func (s *Server) read(r *request) error {
	open, err := s.reader(r.endpoint).read(r)
	if open != nil {
		open.Run()
	}
	return err
}

// Close ends all watches, stops listening, cuts off running answers, and returns
// when all of that has ended. Later requests are refused.
func (s *Server) Close() {
	s.admission.Lock()
	s.cancel()
	s.admission.Unlock()
	if s.http != nil {
		_ = s.http.Close()
	}
	s.serving.Wait()
}

func versionText(version int64) string { return strconv.FormatInt(version, 10) }
