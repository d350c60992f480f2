package web

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// maxSessions bounds how many there are; the one that ends first makes room.
const maxSessions = 1000

// sessions are those who have signed in on the page. A session is a random text
// that stands for the token for some hours.
//
// The page keeps it in the browser's storage for its own origin and sends it as a
// bearer token. Why not a cookie: cookies do not tell ports apart, so that every
// other server on 127.0.0.1, another user's among them, would be sent it. Why not
// the token itself: it cannot be ended in one browser, and would stay there for
// good.
//
// They are in memory: the end of the program ends them. They end with the token that
// they stand for too.
type sessions struct {
	life time.Duration
	now  func() time.Time

	mu sync.Mutex
	// open are by the digest of the session's text.
	open map[string]session
	// of is the digest of the token that all of them were opened with.
	of []byte
}

type session struct{ until time.Time }

func newSessions(life time.Duration) *sessions {
	return &sessions{life: life, now: time.Now, open: map[string]session{}}
}

// begin opens a session for somebody who has shown the token.
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

// find looks for a session that lasts, of somebody who showed this token.
func (s *sessions) find(text string, token []byte) (session, bool) {
	key := string(digest("session", text))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(token)
	found, ok := s.open[key]
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

// expire forgets what is over: sessions whose time is up, and all of another token.
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

// sessionAnswer is what /api/session tells.
type sessionAnswer struct {
	// As is how the one who asks has shown who it is: token, session or nothing.
	As string `json:"as"`
	// Session is a new one, only in the answer to POST.
	Session string `json:"session,omitempty"`
	Expires string `json:"expires,omitempty"`
}

// session answers /api/session. GET says who one is, POST with the token opens a
// session, DELETE ends one's own, and with all=true every one.
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
