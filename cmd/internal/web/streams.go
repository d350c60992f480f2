package web

import (
	"fmt"
	"net/http"
	"sync"
)

const (
	// maxStreams is how many event streams may be open at once, and maxOwnStreams how
	// many per client.
	maxStreams    = 100
	maxOwnStreams = 20
)

// streams counts the open event streams.
type streams struct {
	mu       sync.Mutex
	open     int
	byClient map[string]int
}

// enter counts one more; leave must be called when it ends.
func (s *streams) enter(client string) (leave func(), problem *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byClient[client] >= maxOwnStreams:
		return nil, &failure{http.StatusTooManyRequests, fmt.Sprintf("you are following with %d pages already: close one", maxOwnStreams)}
	case s.open >= maxStreams:
		return nil, &failure{http.StatusServiceUnavailable, fmt.Sprintf("%d pages are following already: close one", maxStreams)}
	}
	if s.byClient == nil {
		s.byClient = map[string]int{}
	}
	s.open++
	s.byClient[client]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.byClient[client]--; s.byClient[client] == 0 {
			delete(s.byClient, client)
		}
	}, nil
}

// client names the client of a stream: its session, or else its address.
func (g *guard) client(r *http.Request) string {
	if v := g.visitor(r); v.as == asSession {
		return "session " + v.text
	}
	return "address " + hostOf(r.RemoteAddr)
}
