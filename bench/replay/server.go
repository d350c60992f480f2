package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/bench/podset"
)

// Config says what to serve.
type Config struct {
	// Data is the file with the pods; see [podset.Open].
	Data string
	Kind podset.Kind
	// Pods is their number, 0 meaning as many as Data has; Updates is how many
	// status updates are prepared for watches.
	Pods, Updates int
	Formats       []Format
	// Gzip has lists compressed for clients that accept it.
	Gzip bool
	// TLS has the collection served by TLS and HTTP/2 too.
	TLS bool
}

// Info is what a server says of itself.
type Info struct {
	Origin  string
	Pods    int
	Updates int
	// Version is the collection's.
	Version int
	// Bytes is the size of all pods in each format.
	Bytes map[Format]int
}

// UpdateVersion is the version of the i-th update, by which a client knows it.
func (i Info) UpdateVersion(update int) string { return strconv.Itoa(i.Version + 1 + update) }

// Server serves a collection; see the package's documentation.
type Server struct {
	mux   *http.ServeMux
	info  Info
	forms map[Format]*form
	gzip  bool
}

// New encodes everything that the server can send.
func New(c Config) (*Server, error) {
	source, err := podset.Open(c.Data)
	if err != nil {
		return nil, err
	}
	set, err := source.Make(c.Kind, c.Pods)
	if err != nil {
		return nil, err
	}
	return NewOf(source.Origin, set, c)
}

// NewOf is like [New] with a set that is there already.
func NewOf(origin string, set *podset.Set, c Config) (*Server, error) {
	updates, err := set.Updates(c.Updates)
	if err != nil {
		return nil, err
	}
	s := &Server{
		mux: http.NewServeMux(), forms: map[Format]*form{}, gzip: c.Gzip,
		info: Info{Origin: origin, Pods: len(set.Pods), Updates: len(updates), Version: set.Version, Bytes: map[Format]int{}},
	}
	byPath := map[string][]*form{}
	for _, format := range c.Formats {
		f, err := newForm(format, set, updates, c.Gzip)
		if err != nil {
			return nil, err
		}
		s.forms[format] = f
		byPath[f.path] = append(byPath[f.path], f)
		for _, item := range f.items {
			s.info.Bytes[format] += len(item)
		}
	}
	for path, forms := range byPath {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.serveCollection(w, r, forms) })
	}
	s.addDiscovery()
	s.addControl()
	return s, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) serveCollection(w http.ResponseWriter, r *http.Request, forms []*form) {
	f, err := choose(forms, r.Header.Get("Accept"))
	if err != nil {
		fail(w, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, err)
		return
	}
	q := r.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if q.Get(name) != "" {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Errorf("%s: this server serves the whole collection only", name))
			return
		}
	}
	if watch := q.Get("watch"); watch == "true" || watch == "1" {
		f.serveWatch(w, r)
		return
	}
	f.serveList(w, r)
}

// fail answers as a server does: with a Status.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, err error) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: err.Error(),
	})
}
