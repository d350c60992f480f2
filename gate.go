package tarn

import "fmt"

// gate lets those pass who wait for a version.
type gate struct {
	waiting map[chan struct{}]Version
}

func (g *gate) wait(ch chan struct{}, v Version) {
	if g.waiting == nil {
		g.waiting = map[chan struct{}]Version{}
	}
	g.waiting[ch] = v
}

// reach opens for everyone who waits for v or less. What cannot be compared is
// let through to find that out.
func (g *gate) reach(v Version) {
	for ch, want := range g.waiting {
		if c, ok := v.Compare(want); !ok || c >= 0 {
			close(ch)
			delete(g.waiting, ch)
		}
	}
}

func (g *gate) close() {
	for ch := range g.waiting {
		close(ch)
	}
	g.waiting = nil
}

// await says whether v has been reached, else gives a channel that is closed
// when it may have been.
func (h *hub[T]) await(v Version) (reached bool, wait chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.store.Version(); now != "" || h.synced {
		c, ok := now.Compare(v)
		if !ok {
			return false, nil, fmt.Errorf("the copy is at %q: %w", now, ErrOpaqueVersion)
		}
		if c >= 0 {
			return true, nil, nil
		}
	}
	if h.closed {
		return false, nil, fmt.Errorf("the replica has %w", ErrStopped)
	}
	wait = make(chan struct{})
	h.gate.wait(wait, v)
	return false, wait, nil
}

// giveUp takes back an await.
func (h *hub[T]) giveUp(wait chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.gate.waiting, wait)
}
