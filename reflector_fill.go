package tarn

import "context"

// fillGroup is the number of objects per call of Fill: as many as a page has.
const fillGroup = DefaultPageSize

// filling writes a first state to a [Filler]. It holds one group in memory.
type filling[T any] struct {
	r     *Reflector[T]
	group []Change[T]
	// begun says that the store has the first group; err is the first failure.
	begun bool
	err   error
}

// fills reports whether the next whole state goes to the store in pieces: only into an
// empty store, where there is nothing to compare it with.
func (r *Reflector[T]) fills() bool { return r.filler != nil && r.startedEmpty }

func (f *filling[T]) put(c Change[T]) {
	f.group = append(f.group, c)
	if len(f.group) >= fillGroup {
		f.flush()
	}
}

// pass gives the store the group.
func (f *filling[T]) flush() {
	if f.err == nil {
		err := f.r.filler.Fill(f.group, !f.begun)
		f.err = f.r.rejectSome(context.Background(), err)
		f.begun = true
	}
	clear(f.group)
	f.group = f.group[:0]
}

// commit makes the filled state visible.
func (f *filling[T]) commit(v Version) error {
	if len(f.group) > 0 || !f.begun {
		f.flush()
	}
	if f.err != nil {
		return f.err
	}
	return f.r.filled(f.r.at(v))
}

func (f *filling[T]) empty() bool { return !f.begun && len(f.group) == 0 }

// fillFrom sets the filler, if the store is one. It is not for several sections: the
// store is no longer empty when the second one begins.
func (r *Reflector[T]) fillFrom(store Store[T], filled func(Filler[T], Position) error) {
	if filler, ok := As[Filler[T]](store); ok {
		r.filler = filler
		r.filled = func(at Position) error { return filled(filler, at) }
	}
}

// filled makes the filled state the content, and publishes it.
func (h *fanout[T]) filled(store Filler[T], at Position) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := store.Filled(at)
	if !Taken(err) {
		return err
	}
	if len(h.followers)+len(h.runners()) > 0 {
		initial := h.initial()
		h.publish(initial, nil)
		h.toSinks(h.sections[0], initial, at)
	}
	h.moveTo(h.sections[0], at)
	return err
}
