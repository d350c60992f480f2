package tarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kept is what a store brought back.
type Kept struct {
	// Positions is where each section stood, in any order; empty if there is no content.
	Positions []Position
	// LastContact is when the source was last heard before that state was kept.
	LastContact time.Time
	// Confirm, if there is one, is asked before anything is read from the source
	// whether it is the one that the content is of; without content too, so that it
	// can note which one that will be. It fails with [ErrOtherSource] if it is
	// another; any other error means that this cannot be told yet.
	Confirm func(ctx context.Context) error
}

// Version is the one that all sections had reached, empty if there is no content.
func (k Kept) Version() Version {
	if len(k.Positions) == 0 {
		return ""
	}
	return oldest(k.Positions)
}

func (k Kept) positions() (all Positions) {
	for _, p := range k.Positions {
		all.Move(p)
	}
	return all
}

// of is where a section stood. A position without a version is of no use.
func (k Kept) of(section string) (Position, bool) {
	i := slices.IndexFunc(k.Positions, func(p Position) bool { return p.Section == section })
	if i < 0 || k.Positions[i].Version == "" {
		return Position{Section: section}, false
	}
	return k.Positions[i], true
}

// ErrOtherSource says that kept content is of another source.
var ErrOtherSource = errors.New("the content on disk is of another source")

// restart is what a reflector knows of the content that it began with.
type restart struct {
	// confirm is Kept.Confirm, until it was answered.
	confirm func(ctx context.Context) error
	// resumes says that the source can be followed from the version that was kept,
	// once it was asked for its own.
	resumes bool
	// target is the version that the source said it has: the copy is synced when
	// that is reached.
	target Version
	// watch is how long the next watch is asked for until then.
	watch time.Duration
}

// durable is what keeps content beyond the process. Each field is nil if nothing has
// that ability.
type durable struct {
	Durable
	disk     DiskReporter
	releaser Releaser
}

func durableOf[T any](store Store[T]) (d durable) {
	d.Durable, _ = As[Durable](store)
	d.disk, _ = As[DiskReporter](store)
	d.releaser, _ = As[Releaser](store)
	return d
}

// release tells it that nobody reads and writes it any more.
func (d durable) release() {
	if d.releaser != nil {
		d.releaser.Release()
	}
}

// share is what of an error concerns a section: of objects its own.
func (s section[T]) share(err error) error {
	some, ok := errors.AsType[ObjectErrors](err)
	if !ok {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(some), func(b BadObject) bool { return !b.Key.HasPrefix(s.prefix) })
	if len(own) == 0 {
		return nil
	}
	return own
}

// startFrom takes over what was kept of a section.
func (r *Reflector[T]) startFrom(ctx context.Context, kept Kept, section string, err error) {
	r.fresh = len(kept.Positions) == 0
	if err = r.rejectSome(ctx, err); err != nil {
		if ctx.Err() == nil {
			r.report(ctx, fmt.Errorf("%s: %w; the copy begins with a list", r.opts.Name, err))
		}
		return
	}
	r.restart.confirm = kept.Confirm
	at, known := kept.of(section)
	if !known {
		return
	}
	r.version, r.epoch, r.traits.versioned = at.Version, at.Epoch, true
	r.next.cause = causeRestart
	r.restart.resumes = at.Complete
	r.monitor.update(func(h *Health) {
		h.FromDisk, h.Version, h.LastContact = true, at.Version, kept.LastContact
	})
}

// resume begins a pass where the process before stopped. It returns nil without
// an error if the state must be read instead.
func (r *Reflector[T]) resume(ctx context.Context) (*Pass[T], error) {
	page, err := r.list(ctx, ListQuery{AtLeast: Latest, Limit: 1}, probeDeadline)
	if err != nil {
		return nil, r.explain("probe at", Latest, err)
	}
	r.restart.resumes = false
	switch c, comparable := page.Version.Compare(r.version); {
	case !comparable:
		return nil, nil
	case c < 0:
		r.rewind(ctx, page.Version)
		return nil, nil
	}
	r.restart.target, r.restart.watch = page.Version, firstShortWatch
	return &Pass[T]{r: r, version: r.version}, nil
}

// needsNoProbe says whether a state can be had although a probe cannot: who may
// watch and not list can still be given it as a stream.
func (r *Reflector[T]) needsNoProbe(err error) bool {
	if ReasonOf(err) != ReasonUnknown || errors.Is(err, errNoAnswer) || !r.useWatchList() {
		return false
	}
	r.monitor.failed(err) // if the stream fails too, the list after it is reported
	return true
}

// confirmSource asks whether the content, if there is any, is of this source. If
// it is not, versions prove nothing.
func (r *Reflector[T]) confirmSource(ctx context.Context) error {
	if r.restart.confirm == nil {
		return nil
	}
	timer := newSilenceTimer(ctx, r.opts.Clock, probeDeadline)
	defer timer.close()
	err := r.restart.confirm(timer.ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrOtherSource):
		r.version, r.traits.versioned = "", false // it is no version of this source
		r.newEpoch()
		r.readNext(nextRead{cause: causeOtherSource, version: consistent, afresh: true})
		r.report(ctx, fmt.Errorf("%s: %w; the copy is read anew", r.opts.Name, err))
	default:
		return fmt.Errorf("%s: asking whether the source is the one that the disk is a copy of: %w", r.opts.Name, err)
	}
	r.restart.confirm = nil
	return nil
}

// reached notes that a copy which began from disk has come to where the source was
// when it was asked.
func (r *Reflector[T]) reached() {
	if r.restart.target == "" || r.version.OlderThan(r.restart.target) {
		return
	}
	r.restart.target = ""
	r.monitor.caughtUp(r.version)
	r.markSynced()
}

// caughtUp notes that the content is the source's.
func (m *monitor) caughtUp(v Version) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.LastContact, m.h.Version = now, v
	m.nowSynced()
	m.recovered()
}

// restore brings back what a durable store has.
func (h *fanout[T]) restore(ctx context.Context, store Durable, sections []section[T]) (Kept, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.store.Len()
	kept, err := store.Restore(ctx)
	if !Taken(err) || len(kept.Positions) == 0 {
		return kept, err
	}
	if dropErr := h.begin(kept, sections, before == 0); dropErr != nil {
		return Kept{Confirm: kept.Confirm}, dropErr
	}
	return kept, err
}

// begin starts with content that was restored: what belongs to no section is taken out,
// and the rest is published, if it is news, to those who follow already.
func (h *fanout[T]) begin(kept Kept, sections []section[T], news bool) error {
	h.contact = kept.LastContact
	if len(kept.Positions) > 1 || len(sections) > 1 {
		if err := h.dropOthers(kept, sections); err != nil {
			return err
		}
	}
	if news && len(h.followers) > 0 {
		h.publish(h.initial(), nil)
	}
	for i, s := range sections {
		at, _ := kept.of(s.name)
		h.moveTo(i, at)
	}
	return nil
}

// dropOthers takes out the objects that belong to no section, and the positions of
// sections that there are not any more.
func (h *fanout[T]) dropOthers(kept Kept, sections []section[T]) error {
	var deletes []Change[T]
	for key, object := range h.store.All() {
		if !slices.ContainsFunc(sections, func(s section[T]) bool { return key.HasPrefix(s.prefix) }) {
			deletes = append(deletes, Change[T]{Type: Delete, Missed: true, Key: key, Old: object, Object: object, Version: h.versionOf(object)})
		}
	}
	for _, p := range kept.Positions {
		gone := !slices.ContainsFunc(sections, func(s section[T]) bool { return s.name == p.Section })
		if gone {
			p = Position{Section: p.Section}
		}
		if !gone && len(deletes) == 0 {
			continue
		}
		if err := h.store.Apply(deletes, p); !Taken(err) {
			return fmt.Errorf("taking out what is in no section any more: %w", err)
		}
		for _, s := range h.runners() {
			s.add(h.contact, deletes, p, nil)
		}
		deletes = nil
	}
	return nil
}
