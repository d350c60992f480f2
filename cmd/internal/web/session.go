package web

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// maxSessions bounds the number of sessions; a new one replaces the one that ends
// first.
const maxSessions = 1000

// sessions holds the open sessions of the page. A session is a random text that
// stands for the token for some hours.
//
// The page keeps its session in the browser's storage, which is per origin, and sends
// it as a bearer token. Why not a cookie: cookies ignore ports, so the browser would
// send it to every other server on 127.0.0.1, including those of other users. Why not
// the token itself: it cannot be revoked in one browser.
//
// Sessions are in memory, so they end with the program. They also end when the token
// changes.
type sessions struct {
	life time.Duration
	now  func() time.Time

	mu sync.Mutex
	// open has the open sessions by the digest of their text.
	open map[string]session
	// of is the digest of the token that opened all of them.
	of []byte
}

type session struct{ until time.Time }

func newSessions(life time.Duration) *sessions {
	return &sessions{life: life, now: time.Now, open: map[string]session{}}
}

// begin opens a session for a client with this token.
func (s *sessions) begin(token []byte) (text string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(token)
	for len(s.open) >= maxSessions {
		s.endFirst()
	}
	text, until = randomText(), s.now().Add(s.life)
	s.open[string(digest("session", text))] = session{until}
	return text, until
}

// find returns an open session that was begun with this token.
func (s *sessions) find(text string, token []byte) (session, bool) {
	key := digest("session", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(token)
	found, ok := s.open[string(key)]
	return found, ok
}

// end ends a session.
func (s *sessions) end(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, string(digest("session", text)))
}

// endAll ends every session.
func (s *sessions) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
}

// expire removes sessions whose time is up, and all sessions of another token.
func (s *sessions) expire(token []byte) {
	if !bytes.Equal(s.of, token) {
		clear(s.open)
		s.of = token
	}
	for key, found := range s.open {
		if !s.now().Before(found.until) {
			delete(s.open, key)
		}
	}
}

func (s *sessions) endFirst() {
	first := ""
	for key, found := range s.open {
		if first == "" || found.until.Before(s.open[first].until) {
			first = key
		}
	}
	delete(s.open, first)
}

// sessionAnswer is the answer of /api/session.
type sessionAnswer struct {
	// As is how the request was authenticated: token, session, anonymous or nobody.
	As string `json:"as"`
	// Session is a new one, only in the answer to POST.
	Session string `json:"session,omitempty"`
	Expires string `json:"expires,omitempty"`
}

// session answers /api/session. GET describes the caller, POST with the token opens a
// session, DELETE ends the caller's session, or with all=true every session.
func (s *Site) session(r *http.Request) (any, *failure) {
	v := s.guard.visitor(r)
	switch r.Method {
	case http.MethodPost:
		if v.as != asToken {
			return nil, &failure{http.StatusForbidden, "a session is opened with the token: Authorization: Bearer …"}
		}
		text, until := s.guard.sessions.begin(s.guard.token.now())
		return sessionAnswer{As: asSession, Session: text, Expires: stamp(until)}, nil
	case http.MethodDelete:
		if r.URL.Query().Get("all") == "true" {
			s.guard.sessions.endAll()
		} else {
			s.guard.sessions.end(v.text)
		}
		return sessionAnswer{As: asNobody}, nil
	}
	return sessionAnswer{As: v.as, Expires: stamp(v.until)}, nil
}
