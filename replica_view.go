package tarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A View is one state of each of several replicas, such as pods and nodes, so
// that what is read from one can be looked up in another.
//
//   - Each state is the newest that its replica had when the view was made, with
//     its version, and stays as it is until Close.
//   - If asked, by [Replica.AtLeast], NewView waits until each has reached a
//     version: after writes to several collections it shows all of them.
//   - Any number of goroutines may read it.
//
// Each replica has its own stream from the server, so one may be ahead of another:
// a pod may be there before its node. Whoever cannot have that waits, by AtLeast,
// until the nodes have reached the version of the pods.
type View struct {
	members []Member
	// states has a Snapshot[T] for each *Replica[T].
	states map[any]any
	closes []func()
}

// A Member is a replica as a [View] takes it: the *[Replica] itself, or what its
// AtLeast gives.
type Member interface {
	// ready waits until the member may be seen.
	ready(ctx context.Context) error
	// enter takes the member's state into the view.
	enter(v *View) error
	// told is the member with the version that it has in the view.
	told(v *View) string
}

// NewView takes a state of each member, after it has waited as they say. It
// fails, with nothing taken, if ctx ends first or a store keeps no states. Close
// ends the view.
func NewView(ctx context.Context, members ...Member) (*View, error) {
	for i, m := range members {
		if m == nil {
			return nil, fmt.Errorf("tarn: member %d of a view is nil: give a replica", i)
		}
		if err := m.ready(ctx); err != nil {
			return nil, err
		}
	}
	v := &View{members: members, states: map[any]any{}}
	for _, m := range members {
		if err := m.enter(v); err != nil {
			v.Close()
			return nil, err
		}
	}
	return v, nil
}

// Close lets the states go. What is read afterwards may be incomplete.
func (v *View) Close() {
	for _, end := range v.closes {
		end()
	}
	v.closes = nil
}

// String names the replicas and their versions: "pods at 120, nodes at 118".
func (v *View) String() string {
	each := make([]string, len(v.members))
	for i, m := range v.members {
		each[i] = m.told(v)
	}
	return strings.Join(each, ", ")
}

// errNotInView says that a replica was not among the members.
var errNotInView = errors.New("it is not in this view: name it when the view is made")

// In reads the replica as a view has it. The error says that the view was made
// without this replica.
//
// What is returned can do all that the store's snapshots can; those of package
// memory find by index and by query too.
func (r *Replica[T]) In(v *View) (Reader[T], error) {
	state, ok := v.states[r].(Snapshot[T])
	if !ok {
		return nil, fmt.Errorf("%s: %w", r.name(), errNotInView)
	}
	return state, nil
}

func (r *Replica[T]) ready(context.Context) error {
	if r == nil {
		return fmt.Errorf("tarn: a view was given a %T that is nil", r)
	}
	return nil
}

func (r *Replica[T]) enter(v *View) error {
	if v.states[r] != nil {
		return nil
	}
	store, ok := StoreAs[SnapshotStore[T]](r)
	if !ok {
		return fmt.Errorf("%s: its store (%T) cannot keep a state for a view: use the one of package memory, or one with TakeSnapshot", r.name(), r.store)
	}
	state := store.TakeSnapshot()
	v.states[r] = state
	v.closes = append(v.closes, state.Close)
	return nil
}

func (r *Replica[T]) told(v *View) string {
	state, err := r.In(v)
	if err != nil {
		return err.Error()
	}
	if state.Version() == "" {
		return r.name() + " without a version"
	}
	return fmt.Sprintf("%s at %s", r.name(), state.Version())
}

// AtLeast is the replica as a member of a view that must show version v or a
// later one; see [Replica.WaitFor]. With keys, only what is said of those
// matters; see [Replica.WaitForKey].
func (r *Replica[T]) AtLeast(v Version, keys ...Key) Member { return reached[T]{r, v, keys} }

// reached is a replica that has reached a version.
type reached[T any] struct {
	*Replica[T]
	version Version
	keys    []Key
}

func (m reached[T]) ready(ctx context.Context) error {
	if err := m.Replica.ready(ctx); err != nil {
		return err
	}
	if len(m.keys) == 0 {
		return m.WaitFor(ctx, m.version)
	}
	for _, key := range m.keys {
		if err := m.WaitForKey(ctx, key, m.version); err != nil {
			return err
		}
	}
	return nil
}
