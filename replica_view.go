package tarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A View is one state of each of several replicas, such as pods and nodes, to look up
// objects of one in another.
//
//   - Each state is the newest of its replica when the view is made. It does not
//     change until Close.
//   - With [Replica.AtLeast], NewView waits until a replica has reached a version:
//     after writes to several collections the view shows all of them.
//   - Any number of goroutines may read it.
//
// Each replica has its own stream from the server, so one may be ahead of another: a
// view may have a pod without its node. To prevent this, use AtLeast to wait until the
// nodes have reached the version of the pods.
type View struct {
	members []Member
	// states has a Snapshot[T] for each *Replica[T].
	states map[any]any
	closes []func()
}

// A Member is a replica in a [View]: the *[Replica] itself, or the result of its
// AtLeast.
type Member interface {
	// ready waits until the member has the version that it must show.
	ready(ctx context.Context) error
	// enter adds the member's state to the view.
	enter(v *View) error
	// label is the name of the member and its version in the view.
	label(v *View) string
}

// NewView waits for each member's version and takes a snapshot of each. It fails, and
// holds no snapshot, if ctx ends first or a store has no snapshots. Close releases the
// view.
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

// Close releases the snapshots. Reads after it may be incomplete.
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
		each[i] = m.label(v)
	}
	return strings.Join(each, ", ")
}

// errNotInView says that a replica was not among the members.
var errNotInView = errors.New("it is not in this view: name it when the view is made")

// In returns the replica's state in a view. It fails if the replica is not a member of
// the view.
//
// The result has all methods of the store's snapshots; those of package memory support
// indexes and queries too.
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

func (r *Replica[T]) label(v *View) string {
	state, err := r.In(v)
	if err != nil {
		return err.Error()
	}
	if state.Version() == "" {
		return r.name() + " without a version"
	}
	return fmt.Sprintf("%s at %s", r.name(), state.Version())
}

// AtLeast is the replica as a member of a view that shows version v or a later one;
// see [Replica.WaitFor]. With keys, it waits only for their sections; see
// [Replica.WaitForKey].
func (r *Replica[T]) AtLeast(v Version, keys ...Key) Member { return memberAtLeast[T]{r, v, keys} }

// memberAtLeast is a member that waits for a version.
type memberAtLeast[T any] struct {
	*Replica[T]
	version Version
	keys    []Key
}

func (m memberAtLeast[T]) ready(ctx context.Context) error {
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
