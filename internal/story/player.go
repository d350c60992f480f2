package story

import (
	"errors"
	"io"
	"strings"
	"time"
)

// ErrStopped says that the client stopped a watch before its next event.
var ErrStopped = errors.New("the client stopped the watch")

// Player plays the events of one watch. After the last of them the watch stays
// open and silent, unless the script closes it.
type Player struct {
	server *Server
	parts  []string
	// timeout is what the client asked for; deadline is when that is over.
	timeout  time.Duration
	deadline time.Time
	// until is when the present wait is over, zero if there is none.
	until time.Time
}

// Play begins to play the events of an answer to a watch that the client asked to
// last for the timeout.
func (s *Server) Play(a *Answer, timeout time.Duration) *Player {
	return &Player{server: s, parts: a.Parts, timeout: timeout, deadline: time.Now().Add(timeout)}
}

// Next waits for the next event and returns its words. It returns io.EOF when the
// server closes the watch, and ErrStopped when the client stops it. One who stopped
// waiting can come again and has lost nothing.
func (p *Player) Next(stopped <-chan struct{}) ([]string, error) {
	for len(p.parts) > 0 {
		words := strings.Fields(p.parts[0])
		switch words[0] {
		case "wait":
			if !p.wait(time.Now().Add(p.length(words[1])), stopped) {
				return nil, ErrStopped
			}
		case "idle", "stay":
			return p.idle(words, stopped)
		case "close":
			p.server.End()
			return nil, io.EOF
		case "bookmark", "end":
			p.server.Mention(words[1])
			fallthrough
		default:
			p.parts = p.parts[1:]
			if words[0] == "error" {
				p.server.End()
			}
			return words, nil
		}
		p.parts = p.parts[1:]
	}
	<-stopped
	return nil, ErrStopped
}

// length reads a time; "timeout" is the one that the client asked for.
func (p *Player) length(text string) time.Duration {
	if text == "timeout" {
		return p.timeout
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// wait waits until a time, or until the one of the wait that was stopped before its
// end. It returns false if the client stopped it.
func (p *Player) wait(until time.Time, stopped <-chan struct{}) bool {
	if p.until.IsZero() {
		p.until = until
	}
	timer := time.NewTimer(time.Until(p.until))
	defer timer.Stop()
	select {
	case <-timer.C:
		p.until = time.Time{}
		return true
	case <-stopped:
		return false
	}
}

// idle sends a bookmark every minute, as servers do. "idle" closes the watch when
// the time asked for is over, "stay" never does.
func (p *Player) idle(words []string, stopped <-chan struct{}) ([]string, error) {
	p.server.Mention(words[1])
	until := time.Now().Add(time.Minute)
	if words[0] == "idle" && p.deadline.Before(until) {
		until = p.deadline
	}
	if !p.wait(until, stopped) {
		return nil, ErrStopped
	}
	if words[0] == "idle" && !time.Now().Before(p.deadline) {
		p.server.End()
		return nil, io.EOF
	}
	return []string{"bookmark", words[1]}, nil
}
