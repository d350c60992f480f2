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

// everywhere stands for all sections.
const everywhere = -1

// await says whether a section, or everywhere, has reached v, else gives a channel
// that is closed when it may have.
func (h *hub[T]) await(section int, v Version) (reached bool, wait chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.reached(section); now != "" || h.synced {
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
	h.gateOf(section).wait(wait, v)
	return false, wait, nil
}

func (h *hub[T]) reached(section int) Version {
	if section == everywhere {
		return h.store.Version()
	}
	return h.positions[section]
}

func (h *hub[T]) gateOf(section int) *gate {
	if section == everywhere {
		section = len(h.positions)
	}
	return &h.gates[section]
}

// giveUp takes back an await.
func (h *hub[T]) giveUp(section int, wait chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.gateOf(section).waiting, wait)
}
