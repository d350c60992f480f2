package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// Object is an object of the model server. Every write creates a new one.
type Object struct {
	Name, UID string
	Version   tarn.Version
	// Write tells states apart that have the same version, because the server was
	// restored between them.
	Write int
	// Poison is an object that the replica's transform cannot take.
	Poison bool
}

func (o *Object) String() string {
	if o == nil {
		return "nothing"
	}
	if o.Poison {
		return fmt.Sprintf("%s@%s!", o.Name, o.Version)
	}
	return fmt.Sprintf("%s@%s", o.Name, o.Version)
}

// State is the content of the server, or of a copy, at one moment.
type State map[tarn.Key]*Object

func (s State) String() string {
	names := make([]string, 0, len(s))
	for _, o := range s {
		names = append(names, o.String())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// equal says whether two states have the same content.
func (s State) equal(other State) bool {
	return maps.EqualFunc(s, other, func(a, b *Object) bool { return *a == *b })
}

// Server is a collection with versions, as an API server serves it: a history that is
// compacted, pages of one state, bookmarks, initial events, and silence for a watch from
// a version that it has not reached.
//
// It records all of its states, for the checks.
type Server struct {
	mu      sync.Mutex
	version int
	state   State
	// log holds the events that can be watched: those after version compacted.
	log       []logged
	compacted int
	pages     map[string][]*Object
	// life counts restarts: a restart ends all streams.
	life    int
	changed chan struct{}
	serial  int
	writes  int

	past []Moment
}

type logged struct {
	version int
	event   tarn.Event[*Object]
}

// Moment is a state that the server once had.
type Moment struct {
	At      time.Time
	Version int
	State   State
	What    string
}

// bookmarkEvery is how often a quiet watch gets a bookmark.
const bookmarkEvery = time.Minute

// NewServer returns an empty server at version 1.
func NewServer() *Server {
	s := &Server{version: 1, compacted: 1, state: State{}, pages: map[string][]*Object{}, changed: make(chan struct{})}
	s.remember("start")
	return s
}

// Put creates or updates an object.
func (s *Server) Put(name string, poison bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.writes++
	o := &Object{Name: name, Version: s.now(), Write: s.writes, Poison: poison}
	kind := tarn.EventAdded
	if before, ok := s.state[tarn.Key(name)]; ok {
		kind = tarn.EventModified
		o.UID = before.UID
	} else {
		s.serial++
		o.UID = fmt.Sprintf("%s-%d", name, s.serial)
	}
	s.state = maps.Clone(s.state)
	s.state[tarn.Key(name)] = o
	s.tell(kind, o, "put "+o.String())
}

// Delete removes an object, if it is there.
func (s *Server) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.state[tarn.Key(name)]
	if !ok {
		return
	}
	s.version++
	gone := *before
	gone.Version = s.now()
	s.state = maps.Clone(s.state)
	delete(s.state, tarn.Key(name))
	s.tell(tarn.EventDeleted, &gone, "delete "+gone.String())
}

func (s *Server) tell(kind tarn.EventType, o *Object, what string) {
	s.log = append(s.log, logged{s.version, tarn.Event[*Object]{Type: kind, Object: o}})
	s.remember(what)
	s.wake()
}

// Compact drops the history, except for the last few events, and all page tokens.
func (s *Server) Compact(keep int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.log) - keep; n > 0 {
		s.compacted = s.log[n-1].version
		s.log = slices.Clone(s.log[n:])
	}
	clear(s.pages)
	s.remember("compact")
	s.wake()
}

// Restart breaks every connection.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life++
	s.remember("restart")
	s.wake()
}

// Restore resets the server to its state at a version, or to nothing: connections break,
// and the later history is gone.
func (s *Server) Restore(version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = State{}
	for _, m := range s.past {
		if m.Version <= version {
			s.state = m.State
		}
	}
	s.version, s.compacted = version, version
	s.log = nil
	clear(s.pages)
	s.life++
	s.remember("restore")
	s.wake()
}

// Version is the server's current version.
func (s *Server) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// State is the server's content.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Past returns every state so far.
func (s *Server) Past() []Moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.past)
}

func (s *Server) now() tarn.Version { return tarn.Version(strconv.Itoa(s.version)) }

func (s *Server) remember(what string) {
	s.past = append(s.past, Moment{At: time.Now(), Version: s.version, State: s.state, What: what})
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// List implements tarn.Source.
func (s *Server) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*Object], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return tarn.Page[*Object]{}, err
	}
	if want, err := strconv.Atoi(string(q.AtLeast)); err == nil && want > s.version && q.Continue == "" {
		return tarn.Page[*Object]{}, tarn.Because(tarn.ReasonTooNew, 0, fmt.Errorf("version %d is too large, the server is at %d", want, s.version))
	}
	page := tarn.Page[*Object]{Version: s.now()}
	rest := slices.SortedFunc(maps.Values(s.state), func(a, b *Object) int { return strings.Compare(a.Name, b.Name) })
	if q.Continue != "" {
		var ok bool
		if rest, ok = s.pages[q.Continue]; !ok {
			return tarn.Page[*Object]{}, tarn.Because(tarn.ReasonExpired, 0, errors.New("the continue token has expired"))
		}
		version, _, _ := strings.Cut(q.Continue, "/")
		page.Version = tarn.Version(version)
	}
	if q.Limit > 0 && int64(len(rest)) > q.Limit {
		token := fmt.Sprintf("%s/%d", page.Version, len(s.pages))
		s.pages[token] = rest[q.Limit:]
		page.Continue = token
		rest = rest[:q.Limit]
	}
	page.Items = slices.Clone(rest)
	return page, nil
}

// Watch implements tarn.Source.
func (s *Server) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*Object], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from, err := strconv.Atoi(string(q.From))
	w := &serverStream{server: s, life: s.life, at: from, deadline: time.Now().Add(q.Timeout), spoke: time.Now()}
	if q.Initial {
		if err == nil && from > s.version {
			return nil, tarn.Because(tarn.ReasonTooNew, 0, fmt.Errorf("version %d is too large, the server is at %d", from, s.version))
		}
		for _, o := range slices.SortedFunc(maps.Values(s.state), func(a, b *Object) int { return strings.Compare(a.Name, b.Name) }) {
			w.initial = append(w.initial, tarn.Event[*Object]{Type: tarn.EventAdded, Object: o})
		}
		w.initial = append(w.initial, tarn.Event[*Object]{Type: tarn.EventBookmark, Version: s.now(), InitialEnd: true})
		w.at = s.version
		return w, nil
	}
	if err != nil {
		// Without a version: the present objects, not in version order, then events.
		for _, o := range s.state {
			w.initial = append(w.initial, tarn.Event[*Object]{Type: tarn.EventAdded, Object: o})
		}
		w.at = s.version
		return w, nil
	}
	if from < s.compacted {
		return nil, expired(from, s.compacted)
	}
	return w, nil
}

func expired(at, compacted int) error {
	return tarn.Because(tarn.ReasonExpired, 0, fmt.Errorf("version %d is gone, the oldest is %d", at, compacted))
}

// Describe implements tarn.Source.
func (s *Server) Describe(o *Object) (tarn.Meta, error) {
	if o == nil {
		return tarn.Meta{}, errors.New("nil object")
	}
	m := tarn.Meta{Version: o.Version, UID: o.UID}
	if o.Name == "" {
		return m, errors.New("an object without a name")
	}
	m.Key = tarn.Key(o.Name)
	return m, nil
}

// serverStream is one watch of a server.
type serverStream struct {
	server   *Server
	life     int
	at       int
	initial  []tarn.Event[*Object]
	deadline time.Time
	spoke    time.Time
}

func (w *serverStream) Next(ctx context.Context, buf []tarn.Event[*Object]) (int, error) {
	for {
		n, changed, err := w.read(buf)
		if n > 0 || err != nil {
			return n, err
		}
		next := w.spoke.Add(bookmarkEvery)
		if w.deadline.Before(next) {
			next = w.deadline
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		}
	}
}

// read returns the events that are due.
func (w *serverStream) read(buf []tarn.Event[*Object]) (int, <-chan struct{}, error) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(w.initial) > 0 {
		n := copy(buf, w.initial)
		w.initial = w.initial[n:]
		w.spoke = time.Now()
		return n, nil, nil
	}
	if w.life != s.life {
		return 0, nil, io.EOF
	}
	if w.at < s.compacted {
		return 0, nil, expired(w.at, s.compacted)
	}
	n := 0
	for _, l := range s.log {
		if l.version > w.at && n < len(buf) {
			buf[n] = l.event
			w.at = l.version
			n++
		}
	}
	now := time.Now()
	switch {
	case n > 0:
		w.spoke = now
	case !now.Before(w.deadline):
		return 0, nil, io.EOF
	case now.Sub(w.spoke) >= bookmarkEvery:
		w.spoke = now
		if w.at > s.version {
			break // a watch from a future version gets nothing
		}
		buf[0] = tarn.Event[*Object]{Type: tarn.EventBookmark, Version: s.now()}
		w.at = s.version
		n = 1
	}
	return n, s.changed, nil
}

func (w *serverStream) Close() {}
