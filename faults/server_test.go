package faults_test

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

// thing is what a [server] holds. Each write makes a new one.
type thing struct {
	name, uid string
	version   int
}

func (o *thing) String() string {
	if o == nil {
		return "nil"
	}
	return fmt.Sprintf("%s@%d", o.name, o.version)
}

// server is a model of a source: versions that count writes, compaction, pages,
// initial events, bookmarks every minute, and a past to be rewound to. A watch
// from a version that it has not reached is silent.
type server struct {
	mu sync.Mutex
	// states are the contents after each write, the first one empty.
	states []map[string]*thing
	// log is what each write did: log[i] leads to states[i+1].
	log       []tarn.Event[*thing]
	compacted int
	// boots counts restarts, which break all streams.
	boots   int
	changed chan struct{}
	// open counts streams that were not closed.
	open int
	// tokens are the states of pages.
	tokens map[string]int
}

func newServer(names ...string) *server {
	s := &server{states: []map[string]*thing{{}}, changed: make(chan struct{}), tokens: map[string]int{}}
	for _, name := range names {
		s.put(name)
	}
	return s
}

func (s *server) now() int { return len(s.log) }

func (s *server) content() map[string]*thing { return s.states[len(s.states)-1] }

func (s *server) put(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.now() + 1
	o := &thing{name: name, uid: fmt.Sprintf("%s/%d/%d", name, s.boots, v), version: v}
	e := tarn.Event[*thing]{Type: tarn.EventAdded, Object: o}
	if before, ok := s.content()[name]; ok {
		e.Type, o.uid = tarn.EventModified, before.uid
	}
	next := maps.Clone(s.content())
	next[name] = o
	s.write(e, next)
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.content()[name]
	if !ok {
		return
	}
	last := &thing{name: name, uid: before.uid, version: s.now() + 1}
	next := maps.Clone(s.content())
	delete(next, name)
	s.write(tarn.Event[*thing]{Type: tarn.EventDeleted, Object: last}, next)
}

func (s *server) write(e tarn.Event[*thing], next map[string]*thing) {
	s.log = append(s.log, e)
	s.states = append(s.states, next)
	s.wake()
}

func (s *server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.now()
	clear(s.tokens)
}

// rewind takes back the last writes, as a restored backup does.
func (s *server) rewind(back int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now() - back
	s.log, s.states = s.log[:at:at], s.states[:at+1:at+1]
	s.compacted = min(s.compacted, at)
	clear(s.tokens)
	s.boots++
	s.wake()
}

func (s *server) state() map[tarn.Key]*thing {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := map[tarn.Key]*thing{}
	for name, o := range s.content() {
		state[tarn.Key(name)] = o
	}
	return state
}

func version(v int) tarn.Version { return tarn.Version(strconv.Itoa(v)) }

func (s *server) Describe(o *thing) (tarn.Meta, error) {
	if o == nil || o.name == "" {
		return tarn.Meta{}, errors.New("this is no thing")
	}
	return tarn.Meta{Key: tarn.Key(o.name), Version: version(o.version), UID: o.uid}, nil
}

func (s *server) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*thing], error) {
	if ctx.Err() != nil {
		return tarn.Page[*thing]{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, begin := s.now(), 0
	if q.Continue != "" {
		token, place, _ := strings.Cut(q.Continue, "+")
		var known bool
		if at, known = s.tokens[token]; !known {
			return tarn.Page[*thing]{}, tarn.Because(tarn.ReasonExpired, 0, errors.New("token"))
		}
		begin, _ = strconv.Atoi(place)
	} else if q.AtLeast != tarn.Latest && version(at).OlderThan(q.AtLeast) {
		return tarn.Page[*thing]{}, tarn.Because(tarn.ReasonTooNew, 0, errors.New("version"))
	}
	state := s.states[at]
	names := slices.Sorted(maps.Keys(state))
	page := tarn.Page[*thing]{Version: version(at)}
	for i, name := range names[begin:] {
		if q.Limit > 0 && int64(i) == q.Limit {
			token := fmt.Sprintf("%d.%d", s.boots, at)
			s.tokens[token] = at
			page.Continue = fmt.Sprintf("%s+%d", token, begin+i)
			break
		}
		page.Items = append(page.Items, state[name])
	}
	return page, nil
}

func (s *server) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*thing], error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watch{server: s, boots: s.boots, at: s.now(), bookmark: time.Now().Add(time.Minute)}
	if q.Timeout > 0 {
		w.until = time.Now().Add(q.Timeout)
	}
	unnamed := q.From == tarn.Latest || q.From == tarn.Any
	switch {
	case q.Initial && version(w.at).OlderThan(q.From):
		return nil, tarn.Because(tarn.ReasonTooNew, 0, errors.New("version"))
	case q.Initial || unnamed:
		for _, name := range slices.Sorted(maps.Keys(s.content())) {
			w.first = append(w.first, tarn.Event[*thing]{Type: tarn.EventAdded, Object: s.content()[name]})
		}
		if q.Initial {
			w.first = append(w.first, tarn.Event[*thing]{Type: tarn.EventBookmark, Version: version(w.at), InitialEnd: true})
		}
	default:
		from, err := strconv.Atoi(string(q.From))
		if err != nil {
			return nil, err
		}
		w.at = from
	}
	if w.at < s.compacted {
		return nil, tarn.Because(tarn.ReasonExpired, 0, errors.New("compacted"))
	}
	s.open++
	return w, nil
}

// watch is a stream of a [server].
type watch struct {
	server          *server
	boots, at       int
	first           []tarn.Event[*thing]
	until, bookmark time.Time
	closed          bool
}

func (w *watch) Next(ctx context.Context, buf []tarn.Event[*thing]) (int, error) {
	for {
		n, wait, err := w.poll(buf)
		if n > 0 || err != nil {
			return n, err
		}
		wake := w.bookmark
		if !w.until.IsZero() && w.until.Before(wake) {
			wake = w.until
		}
		timer := time.NewTimer(time.Until(wake))
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, context.Cause(ctx)
		case <-wait:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (w *watch) poll(buf []tarn.Event[*thing]) (int, <-chan struct{}, error) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case w.boots != s.boots:
		return 0, nil, errors.New("the server was restarted")
	case len(w.first) > 0:
		n := copy(buf, w.first)
		w.first = w.first[n:]
		return n, nil, nil
	case w.at < s.compacted:
		return 0, nil, tarn.Because(tarn.ReasonExpired, 0, errors.New("compacted"))
	case w.at < s.now():
		n := copy(buf, s.log[w.at:])
		w.at += n
		return n, nil, nil
	case !w.until.IsZero() && !now.Before(w.until):
		return 0, nil, io.EOF
	case !now.Before(w.bookmark):
		w.bookmark = now.Add(time.Minute)
		if w.at == s.now() {
			buf[0] = tarn.Event[*thing]{Type: tarn.EventBookmark, Version: version(w.at)}
			return 1, nil, nil
		}
	}
	return 0, s.changed, nil
}

func (w *watch) Close() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.server.open--
	}
}
