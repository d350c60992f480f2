package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// opaquePatience is how long a copy may lag behind a server whose versions cannot
// be compared.
const opaquePatience = 5 * time.Second

// settle looks again at what may only have changed between the two states, once the
// copy has reached the version that the server had.
func (c *comparison[T]) settle(ctx context.Context) error {
	if len(c.mismatches) == 0 {
		return nil
	}
	at := c.result.Version
	for _, u := range c.mismatches {
		if at.OlderThan(u.at) {
			at = u.at
		}
	}
	err := c.await(ctx, at)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		c.result.Note = err.Error()
	}
	now := c.target.Store.Snapshot()
	defer now.Close()
	for _, key := range slices.Sorted(maps.Keys(c.mismatches)) {
		c.second(now, key, c.mismatches[key], err == nil)
	}
	return nil
}

// await waits until the copy has reached a version.
func (c *comparison[T]) await(ctx context.Context, v tarn.Version) error {
	within, cancel := context.WithTimeoutCause(ctx, c.opts.Patience, fmt.Errorf("not within %s", c.opts.Patience))
	defer cancel()
	err := c.target.Replica.WaitFor(within, v)
	if errors.Is(err, tarn.ErrOpaqueVersion) {
		timer := time.NewTimer(opaquePatience)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		return errors.New("the server's versions do not tell whether the copy is behind")
	}
	return err
}

// second is the second comparison of an object. reached says that the copy has
// reached the listed state: then the copy has either that state or a later one,
// which its version shows.
func (c *comparison[T]) second(now *memory.Snapshot[T], key tarn.Key, u mismatch[T], reached bool) {
	var held side[T]
	object, ok := now.Get(key)
	if ok {
		held = c.describe(c.target.Sources[0], key, object)
	}
	switch {
	case ok && u.listed != nil && held.same(*u.listed):
		c.agree(*u.listed)
	case !ok && u.listed == nil: // deleted, as the server said
	case !reached || ok && !numbered(held.Version): // a transform may leave versions out
		c.result.Undecided++
	case ok && notNewer(held.Version, u.at):
		c.differ(&held, u.listed)
	default:
		c.result.Skipped++
	}
}

// agree counts an object that is the same on both sides.
func (c *comparison[T]) agree(s side[T]) {
	if d, ok := c.digest(&s); ok {
		c.result.Digest.add(d)
		c.result.ServerDigest.add(d)
	}
}

// differ counts an object that is not.
func (c *comparison[T]) differ(held, listed *side[T]) {
	if d, ok := c.digest(held); ok {
		c.result.Digest.add(d)
	}
	if d, ok := c.digest(listed); ok {
		c.result.ServerDigest.add(d)
	}
	d := Difference{Kind: Changed}
	switch {
	case held == nil:
		c.result.Missing++
		d.Kind = Missing
	case listed == nil:
		c.result.Extra++
		d.Kind = Extra
	default:
		c.result.Changed++
	}
	if len(c.result.Differences) >= c.opts.MaxDifferences {
		return
	}
	if held != nil {
		d.Key, d.Held = held.Key, held.Version
	}
	if listed != nil {
		d.Key, d.Served = listed.Key, listed.Version
	}
	if d.Kind == Changed {
		d.Fields = differingFields(held.object, listed.object, maxFields)
	}
	c.result.Differences = append(c.result.Differences, d)
}

// digest is an object's part of a side's digest.
func (c *comparison[T]) digest(s *side[T]) (Digest, bool) {
	if s == nil || c.opts.NoDigest {
		return Digest{}, false
	}
	d, err := s.sum()
	if err != nil {
		c.result.Unreadable++
	}
	return d, err == nil
}

// conclude gives the verdict.
func (r *Result) conclude() {
	switch {
	case r.Count() > 0 || r.Behind:
		r.Verdict = Different
	case r.Unreadable > 0 || r.Undecided > 0:
		r.Verdict = Unknown
	default:
		r.Verdict = Equal
	}
}
