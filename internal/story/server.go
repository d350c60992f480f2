package story

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// Server answers as its script says and records every request.
//
// A list of one item at the newest version is a probe. Where the script says
// nothing, a list hangs, a watch stays open and silent, and a probe gets the newest
// version that was ever mentioned.
type Server struct {
	mu       sync.Mutex
	answers  map[string][]*Answer
	requests []string
	newest   string
	// ended is when the last answer was through.
	ended time.Time
	// left is how many answers were not asked for yet; those without end do not
	// count. over is closed with the last.
	left int
	over chan struct{}
}

// NewServer makes a server that plays a script from its beginning.
func NewServer(s *Script) *Server {
	server := &Server{answers: map[string][]*Answer{}, ended: time.Now(), over: make(chan struct{})}
	for verb, all := range s.answers {
		for _, a := range all {
			copied := *a
			server.answers[verb] = append(server.answers[verb], &copied)
			if a.times != always {
				server.left += a.times
			}
		}
	}
	if server.left == 0 {
		close(server.over)
	}
	return server
}

// Next records a request and finds its answer.
func (s *Server) Next(verb, request string) *Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := verb
	if verb != "probe" { // when one is due is left to chance
		text = strings.TrimSpace(verb + " " + request + " " + ShowWait(time.Since(s.ended)))
	}
	s.requests = append(s.requests, text)
	for len(s.answers[verb]) > 0 {
		a := s.answers[verb][0]
		if a.times == 0 {
			s.answers[verb] = s.answers[verb][1:]
			continue
		}
		if a.times != always {
			a.times--
			s.give()
		}
		return a
	}
	switch verb {
	case "list":
		return &Answer{words: []string{"hang"}}
	case "probe":
		return &Answer{words: strings.Fields(s.newest)}
	default:
		return &Answer{}
	}
}

// give counts an answer.
func (s *Server) give() {
	if s.left--; s.left == 0 {
		close(s.over)
	}
}

// Over is closed when every answer has been asked for.
func (s *Server) Over() <-chan struct{} { return s.over }

// End records that an answer is through. Waits are counted from there.
func (s *Server) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
}

// Mention remembers the newest version that was mentioned.
func (s *Server) Mention(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == "" || tarn.Version(s.newest).OlderThan(tarn.Version(version)) {
		s.newest = version
	}
}

// Requests gives what was asked, equal requests in a row as one line.
func (s *Server) Requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for i := 0; i < len(s.requests); {
		n := 1
		for i+n < len(s.requests) && s.requests[i+n] == s.requests[i] {
			n++
		}
		b.WriteString(s.requests[i])
		if n > 1 {
			fmt.Fprintf(&b, " ×%d", n)
		}
		b.WriteString("\n")
		i += n
	}
	return b.String()
}
