package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// Site is the page and the HTTP API over a mirror.
//
//   - It only reads: no request changes anything but sessions.
//   - It may be served by any number of connections at once, and more than one
//     Site may show the same mirror.
//   - What it sends is bounded: rows come in pages, streams send the newest state
//     and queue nothing.
//
// The checks of Host, origin and token are part of it, wherever it is mounted. [Listen]
// checks that an address that others can reach has TLS.
type Site struct {
	// mirror is nil on the page of a relay, and relay on that of a mirror.
	mirror       *mirror.Mirror
	relay        func() RelayHealth
	options      Options
	guard        *guard
	secretFilter secretFilter
	orders       *orderCache
	past         *pastCache
	pulse        pulse
	streams      streams
	// asking has a slot for each statement of SQL that may run at a time.
	asking  chan struct{}
	handler http.Handler
}

// New makes a Site, to be served at the root of a host. It adds an index to each
// of the mirror's stores, by which it finds what an object owns.
func New(m *mirror.Mirror, opts Options) (*Site, error) {
	if m == nil {
		return nil, errors.New("web: the mirror is nil: mirror.Start gives one")
	}
	opts = opts.withDefaults()
	token, err := opts.newToken()
	if err != nil {
		return nil, err
	}
	opts.warnOfToken()
	if err := addOwnerIndexes(m); err != nil {
		return nil, err
	}
	s := &Site{
		mirror: m, options: opts, guard: newGuard(token, opts), secretFilter: secretFilter{open: opts.ShowSecrets},
		orders: newOrderCache(), past: newPastCache(), asking: make(chan struct{}, maxStatements),
	}
	mux := http.NewServeMux()
	mux.HandleFunc(sessionPath, answer(s.session))
	mux.HandleFunc("/api/tables", answer(s.tables))
	mux.HandleFunc("/api/tables/{table}", answer(s.rows))
	mux.HandleFunc("/api/objects/{table}/{key...}", answer(s.object))
	mux.HandleFunc("/api/history/{table}", answer(s.history))
	mux.HandleFunc("/api/history/{table}/{key...}", answer(s.objectHistory))
	mux.HandleFunc("/api/problems", answer(s.problems))
	mux.HandleFunc("GET /api/sql", answer(s.sqlTables))
	mux.HandleFunc("POST /api/sql", s.sql)
	mux.HandleFunc("/api/events", s.events)
	mux.HandleFunc("/api/", unknown)
	mux.HandleFunc("/debug/", unknown)
	mux.Handle("/metrics", s.metrics())
	mux.HandleFunc("/healthz", s.alive)
	mux.HandleFunc("/readyz", s.ready)
	if opts.Profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	}
	mux.Handle("/", newFiles())
	s.handler = s.logged(s.guard.protect(deadline(mux)))
	return s, nil
}

// SignInPath is the path of the link to print. If the site made its own token, the link
// carries it and signs in. Otherwise it is the path of the page.
func (s *Site) SignInPath() string {
	if t := s.guard.token; t != nil && t.made != "" {
		return "/#token=" + t.made
	}
	return "/"
}

// EndSessions ends all sessions, so that everybody must sign in again.
func (s *Site) EndSessions() { s.guard.sessions.endAll() }

// ServeHTTP answers a request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// limitBodyTime keeps the server's read deadline until the body of a request has
// arrived, and removes it then: it would end streams and long answers too.
func limitBodyTime(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if r.Body == nil || r.Body == http.NoBody {
		_ = control.SetReadDeadline(time.Time{}) // a recorder in a test has none
		return
	}
	r.Body = &timedBody{r.Body, control}
}

type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// answerTime is how long a client may take to read an answer. Streams set their
// own, and profiles take as long as was asked for.
const answerTime = 30 * time.Second

func deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		until := time.Now().Add(answerTime)
		if strings.HasPrefix(r.URL.Path, "/debug/") {
			until = time.Time{}
		}
		// Where there is no connection to set it on, none is needed.
		_ = http.NewResponseController(w).SetWriteDeadline(until)
		next.ServeHTTP(w, r)
	})
}

func unknown(w http.ResponseWriter, r *http.Request) {
	fail(w, notFound(r.URL.Path+" is nothing here: see the documentation of package web"))
}

func (s *Site) table(name string) (*mirror.Table, *failure) {
	if s.mirror == nil {
		return nil, notFound("this is the page of a relay, which has no tables")
	}
	table, ok := s.mirror.Table(name)
	if !ok {
		var names []string
		for _, t := range s.mirror.Tables() {
			names = append(names, t.Resource().Name())
		}
		return nil, notFound(fmt.Sprintf("%q is not mirrored: there are %s", name, strings.Join(names, ", ")))
	}
	return table, nil
}
