package tarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kept describes the content that a store restored or a sink holds.
type Kept struct {
	// Positions holds the position of each section, in any order; empty if there is no
	// content.
	Positions []Position
	// LastContact is the time of the last contact with the source before that state was
	// written.
	LastContact time.Time
	// Confirm, if not nil, checks that the source is the one that the content came from.
	// It is called before the first read from the source; without content too, so that it
	// can record the source. It fails with [ErrOtherSource] if the source is another one;
	// any other error means that it cannot tell yet.
	Confirm func(ctx context.Context) error
	// ConfirmSection, if not nil, is Confirm for one of several sections whose sources
	// are different servers.
	ConfirmSection func(ctx context.Context, section string) error
}

// Version is the version that all sections have reached; empty if there is no content.
func (k Kept) Version() Version {
	if len(k.Positions) == 0 {
		return ""
	}
	return oldest(k.Positions)
}

// empty is what is kept, without the content.
func (k Kept) empty() Kept { return Kept{Confirm: k.Confirm, ConfirmSection: k.ConfirmSection} }

func (k Kept) positions() (all Positions) {
	for _, p := range k.Positions {
		all.Move(p)
	}
	return all
}

// of returns the position of a section, and false if it has no version.
func (k Kept) of(section string) (Position, bool) {
	i := slices.IndexFunc(k.Positions, func(p Position) bool { return p.Section == section })
	if i < 0 || k.Positions[i].Version == "" {
		return Position{Section: section}, false
	}
	return k.Positions[i], true
}

// ErrOtherSource says that the kept content came from another source.
var ErrOtherSource = errors.New("the content on disk is of another source")

// restart describes the content that a reflector began with.
type restart struct {
	// confirm is Kept.Confirm until it has succeeded or found another source.
	confirm func(ctx context.Context) error
	// canResume says that a probe can allow a watch from the kept version, without a
	// list.
	canResume bool
	// target is the source's version at the start: the copy is synced when it reaches
	// it.
	target Version
	// watch is the timeout of the next watch until then.
	watch time.Duration
}

// durable holds the abilities of a durable store. Each field is nil if the store does
// not have it.
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

func (d durable) release() {
	if d.releaser != nil {
		d.releaser.Release()
	}
}

// share returns the part of an error that concerns the section: of an ObjectErrors, only
// its own objects.
func (s *section[T]) share(err error) error {
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

// startFrom begins with the kept content of a section.
func (r *Reflector[T]) startFrom(ctx context.Context, kept Kept, section string, err error) {
	r.loaded, r.startedEmpty = true, len(kept.Positions) == 0
	// Also if the content could not be loaded: what is written next is of this source.
	if r.restart.confirm = kept.Confirm; kept.ConfirmSection != nil {
		r.restart.confirm = func(ctx context.Context) error { return kept.ConfirmSection(ctx, section) }
	}
	if err = r.rejectSome(ctx, err); err != nil {
		if ctx.Err() == nil {
			r.report(ctx, fmt.Errorf("%s: %w; the copy begins with a list", r.opts.Name, err))
		}
		return
	}
	at, known := kept.of(section)
	if !known {
		if len(kept.Positions) > 0 {
			// An earlier process may have had the section, of another source or another past of this
			// one.
			r.newEpoch()
		}
		return
	}
	r.version, r.epoch, r.traits.versioned = at.Version, at.Epoch, true
	r.next.cause = causeRestart
	r.renames.partial = r.opts.Transform != nil
	r.restart.canResume = at.Complete
	r.monitor.update(func(h *Health) {
		h.FromDisk, h.Version, h.LastContact = true, at.Version, kept.LastContact
	})
}

// resume begins a pass at the version that the previous process reached. It returns nil
// without an error if the state must be read instead.
func (r *Reflector[T]) resume(ctx context.Context) (*Pass[T], error) {
	page, err := r.list(ctx, ListQuery{AtLeast: Latest, Limit: 1}, probeDeadline)
	if err != nil {
		return nil, r.explain("probe at", Latest, err)
	}
	r.restart.canResume = false
	switch c, comparable := page.Version.Compare(r.version); {
	case !comparable:
		return nil, nil
	case c < 0:
		r.rewind(ctx, page.Version)
		return nil, nil
	}
	r.restart.target, r.restart.watch = page.Version, firstCatchUpWatch
	return &Pass[T]{r: r, version: r.version}, nil
}

// canStreamInstead reports whether the state can be read although the probe failed: a
// user that may watch but not list can still read it as a stream.
func (r *Reflector[T]) canStreamInstead(err error) bool {
	if ReasonOf(err) != ReasonUnknown || errors.Is(err, errNoAnswer) || !r.useWatchList() {
		return false
	}
	r.monitor.failed(err) // if the stream fails too, the list after it is reported
	return true
}

// confirmSource checks that the content came from this source. If it did not, versions
// prove nothing.
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
		r.report(ctx, fmt.Errorf("%s: %w; the copy is read again", r.opts.Name, err))
	default:
		return fmt.Errorf("%s: checking that the content on disk is of this source: %w", r.opts.Name, err)
	}
	r.restart.confirm = nil
	return nil
}

// checkCaughtUp marks a copy from disk as synced once it has reached the version that
// the source had at the start.
func (r *Reflector[T]) checkCaughtUp() {
	if r.restart.target == "" || r.version.OlderThan(r.restart.target) {
		return
	}
	r.restart.target = ""
	r.monitor.caughtUp(r.version)
	r.markSynced()
}

// caughtUp records that the content equals the source's.
func (m *monitor) caughtUp(v Version) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.h.LastContact, m.h.Version = now, v
	m.setSynced()
	m.recovered()
}

// restore loads the content of a durable store and publishes it.
func (h *fanout[T]) restore(ctx context.Context, store Durable, sections []*section[T]) (Kept, error) {
	before := h.store.Len()
	h.startRestore()
	kept, err := store.Restore(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.restored(false) // where nothing could be loaded
	if !Taken(err) || len(kept.Positions) == 0 {
		return kept, err
	}
	if dropErr := h.begin(kept, sections, before == 0); dropErr != nil {
		return kept.empty(), dropErr
	}
	return kept, err
}

// begin starts with restored content. It deletes the objects that belong to no section,
// and publishes the rest, if it is new, to the present followers.
func (h *fanout[T]) begin(kept Kept, sections []*section[T], isNew bool) error {
	h.contact = kept.LastContact
	same := len(sections) == 1 && len(kept.Positions) == 1 && kept.Positions[0].Section == sections[0].name
	if !same {
		if err := h.dropOthers(kept, sections); err != nil {
			return err
		}
	}
	h.restored(isNew)
	for _, s := range sections {
		at, _ := kept.of(s.name)
		h.moveTo(s.state, at)
	}
	return nil
}

// dropOthers deletes the objects that belong to no section, and the positions of
// sections that no longer exist.
func (h *fanout[T]) dropOthers(kept Kept, sections []*section[T]) error {
	var deletes []Change[T]
	for key, object := range h.store.All() {
		if !slices.ContainsFunc(sections, func(s *section[T]) bool { return key.HasPrefix(s.prefix) }) {
			deletes = append(deletes, Change[T]{Type: Delete, Missed: true, Removed: true, Key: key, Old: object, Object: object, Version: h.versionOf(object)})
		}
	}
	for _, p := range kept.Positions {
		gone := !slices.ContainsFunc(sections, func(s *section[T]) bool { return s.name == p.Section })
		if gone {
			p = Position{Section: p.Section}
		}
		if !gone && len(deletes) == 0 {
			continue
		}
		if err := h.store.Apply(deletes, p); !Taken(err) {
			return fmt.Errorf("deleting objects that belong to no section: %w", err)
		}
		for _, s := range h.runners() {
			s.add(h.contact, deletes, p, nil)
		}
		deletes = nil
	}
	return nil
}
