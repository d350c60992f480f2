package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// errInexact says that a source did not answer with the requested state.
var errInexact = errors.New("the server answered with another version than the requested one")

// comparison is one look at both sides: a snapshot of the copy first, then the
// server's state as it comes in.
//
// If both are of one version, what differs is a difference. If not, the server's
// state is read after the snapshot was taken and consistently, so it is the later
// of the two, and certain says what that proves.
type comparison[T any] struct {
	target Target[T]
	opts   Options
	held   *memory.Snapshot[T]
	// at is the version of held, exact says that the server is read at it.
	at    tarn.Version
	exact bool

	// seen has the keys that the server listed, matched counts those of them that
	// the copy has.
	seen    map[tarn.Key]struct{}
	matched int
	// mismatches are objects that may only have changed between the two states. They
	// are held until that is settled; they are no more than the objects that
	// changed meanwhile.
	mismatches map[tarn.Key]mismatch[T]
	// nameless counts unreadable objects that could be any.
	nameless int
	result   Result
}

// mismatch is an object that was not the same on both sides.
type mismatch[T any] struct {
	// listed is the server's state, nil if it had none; version that under which
	// it came, at that of the list.
	listed      *side[T]
	version, at tarn.Version
}

func newComparison[T any](t Target[T], o Options, exact bool) *comparison[T] {
	held := t.Store.Snapshot()
	return &comparison[T]{
		target: t, opts: o, held: held, at: held.Version(), exact: exact,
		seen: make(map[tarn.Key]struct{}, held.Len()), mismatches: map[tarn.Key]mismatch[T]{},
		result: Result{Name: t.Name, Exact: exact, Objects: held.Len()},
	}
}

// run compares everything. pace is called between pages.
func (c *comparison[T]) run(ctx context.Context, pace func(context.Context) error) error {
	for i, source := range c.target.Sources {
		if i > 0 {
			if err := pace(ctx); err != nil {
				return err
			}
		}
		at, err := c.read(ctx, source, pace)
		if err != nil {
			return err
		}
		c.result.reached(at, i == 0)
	}
	c.extras()
	return c.settle(ctx)
}

// reached records the version of a list: the comparison is of the oldest.
func (r *Result) reached(at tarn.Version, first bool) {
	if first || at.OlderThan(r.Version) {
		r.Version = at
	}
}

// read compares the objects of a source, and returns the version of its list.
func (c *comparison[T]) read(ctx context.Context, source tarn.Source[T], pace func(context.Context) error) (tarn.Version, error) {
	q := tarn.ListQuery{AtLeast: tarn.Latest, Limit: c.opts.PageSize}
	if c.exact {
		q.AtLeast, q.Exact = c.at, true
	}
	var at tarn.Version
	for first := true; ; first = false {
		page, err := c.target.list(ctx, source, q)
		c.result.Requests++
		switch {
		case err != nil:
			return at, err
		case first:
			at = page.Version
		case page.Version != at:
			return at, tarn.Because(tarn.ReasonExpired, 0, fmt.Errorf("the pages are of versions %s and %s", at, page.Version))
		}
		if c.exact && at != c.at {
			return at, errInexact
		}
		c.page(source, page)
		if page.Continue == "" {
			return at, nil
		}
		q.Continue = page.Continue
		if err := pace(ctx); err != nil {
			return at, err
		}
	}
}

func (c *comparison[T]) page(source tarn.Source[T], page tarn.Page[T]) {
	c.result.Listed += len(page.Items) + len(page.Bad)
	for _, object := range page.Items {
		listed, version, err := c.target.take(source, object)
		if err != nil {
			c.unreadable(listed.Key)
			continue
		}
		c.object(source, listed, mismatch[T]{listed: &listed, version: version, at: page.Version})
	}
	for _, bad := range page.Bad {
		c.unreadable(bad.Key)
	}
}

// unreadable leaves an object out: the copy keeps the last state that could be
// read, which says nothing of the one there is.
func (c *comparison[T]) unreadable(key tarn.Key) {
	c.result.Unreadable++
	if key == "" {
		c.nameless++
		return
	}
	c.seen[tarn.Key(strings.Clone(string(key)))] = struct{}{}
	if _, ok := c.held.Get(key); ok {
		c.matched++
	}
}

// object compares one that the server listed.
func (c *comparison[T]) object(source tarn.Source[T], listed side[T], u mismatch[T]) {
	if _, twice := c.seen[listed.Key]; twice {
		return
	}
	c.seen[tarn.Key(strings.Clone(string(listed.Key)))] = struct{}{}
	object, ok := c.held.Get(listed.Key)
	if !ok {
		if c.exact || notNewer(u.version, c.at) {
			c.differ(nil, &listed)
		} else {
			c.mismatches[listed.Key] = u
		}
		return
	}
	c.matched++
	held := c.describe(source, listed.Key, object)
	switch {
	case held.same(listed):
		c.agree(listed)
	case c.certain(held.Meta, listed.Meta, u):
		c.differ(&held, &listed)
	default:
		c.mismatches[listed.Key] = u
	}
}

// certain says whether two states of an object prove a difference, where the
// snapshot is the older one of the two sides, of the version v or of a later one.
//
//   - Two contents of one uid and version cannot both be right.
//   - What was written up to v, and is still so, the copy must have.
//   - What the copy has, and was written up to the version of the list, is not
//     newer than what was listed.
func (c *comparison[T]) certain(held, listed tarn.Meta, u mismatch[T]) bool {
	if c.exact || held.UID == listed.UID && held.Version == listed.Version && held.Version != "" {
		return true
	}
	order, ok := held.Version.Compare(u.version)
	if !ok {
		return false
	}
	if order > 0 {
		return notNewer(held.Version, u.at)
	}
	return notNewer(u.version, c.at)
}

// notNewer says whether v is known to be no newer than w.
func notNewer(v, w tarn.Version) bool {
	order, ok := v.Compare(w)
	return ok && order <= 0
}

// describe is an object of the copy.
func (c *comparison[T]) describe(source tarn.Source[T], key tarn.Key, object T) side[T] {
	m, _ := source.Describe(object) // what cannot be described differs from what can
	m.Key = key
	return side[T]{m, object}
}

// extras finds the objects of the copy that the server did not list.
func (c *comparison[T]) extras() {
	if c.matched == c.held.Len() {
		return
	}
	for key, object := range c.held.All() {
		if _, ok := c.seen[key]; ok {
			continue
		}
		switch {
		case c.nameless > 0:
			c.result.Undecided++ // it may be what could not be read
		case c.exact:
			held := c.describe(c.target.Sources[0], key, object)
			c.differ(&held, nil)
		default:
			c.mismatches[key] = mismatch[T]{at: c.result.Version}
		}
	}
}
