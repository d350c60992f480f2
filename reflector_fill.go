package tarn

import "context"

// fillGroup is how many objects are gathered before they are passed on: as many as
// a page has.
const fillGroup = DefaultPageSize

// filling is a first state on its way into a [Filler]. It holds one group.
type filling[T any] struct {
	r     *Reflector[T]
	group []Change[T]
	// begun says that the store has the first group, err why it did not take one.
	begun bool
	err   error
}

// fills says whether the next whole state goes to the store piece by piece: where
// there is nothing to compare it with, which is the one time when all of it is new.
func (r *Reflector[T]) fills() bool { return r.filler != nil && r.fresh }

func (f *filling[T]) put(c Change[T]) {
	f.group = append(f.group, c)
	if len(f.group) >= fillGroup {
		f.pass()
	}
}

// pass gives the store the group.
func (f *filling[T]) pass() {
	if f.err == nil {
		err := f.r.filler.Fill(f.group, !f.begun)
		f.err = f.r.rejectSome(context.Background(), err)
		f.begun = true
	}
	clear(f.group)
	f.group = f.group[:0]
}

// commit shows what the store was given.
func (f *filling[T]) commit(v Version) error {
	if len(f.group) > 0 || !f.begun {
		f.pass()
	}
	if f.err != nil {
		return f.err
	}
	return f.r.filled(f.r.at(v))
}

func (f *filling[T]) empty() bool { return !f.begun && len(f.group) == 0 }

// fillFrom lets a reflector fill a store that can be filled. A store of several
// sections has content when the second of them begins, so that it is not for them.
func (r *Reflector[T]) fillFrom(store Store[T], filled func(Filler[T], Position) error) {
	if filler, ok := As[Filler[T]](store); ok {
		r.filler = filler
		r.filled = func(at Position) error { return filled(filler, at) }
	}
}

// filled makes what was filled the content, and publishes it.
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
		h.toSinks(0, initial, at)
	}
	h.moveTo(0, at)
	return err
}
