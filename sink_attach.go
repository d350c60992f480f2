package tarn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// sinkOpenWait is how long a replica waits for its sinks to open before it asks its
// source. A sink that opens in time misses nothing. One that opens later, because its
// server is unreachable, is compared with the copy.
const sinkOpenWait = 5 * time.Second

// restore loads what was kept of the content, before Run does anything else. If that
// fails, the replica begins as one without.
func (r *Replica[T]) restore(ctx context.Context) {
	var kept Kept
	var err error
	sections := r.present()
	if r.durable.Durable != nil {
		kept, err = r.fanout.restore(ctx, r.durable, sections)
	} else if s := r.fanout.restorer(); s != nil {
		kept, err = r.fanout.load(ctx, s, sections)
	} else {
		return
	}
	kept = r.fanout.disowning(kept)
	r.sections.confirm = kept.ConfirmSection // nobody else uses it while the content is loaded
	for _, s := range sections {
		s.reflector.startFrom(ctx, kept, s.name, s.share(err))
	}
}

// restorer is the sink from which the content can be loaded; nil if there is none.
func (h *fanout[T]) restorer() *sinkRunner[T] {
	for _, s := range h.runners() {
		if _, ok := s.sink.(Restorer[T]); ok {
			return s
		}
	}
	return nil
}

// load fills the store with what a sink has.
func (h *fanout[T]) load(ctx context.Context, s *sinkRunner[T], sections []*section[T]) (Kept, error) {
	if err := s.use(ctx); err != nil {
		return Kept{}, err
	}
	defer s.release()
	kept, err := s.sink.Open(ctx, s.flushNow)
	if err != nil && !errors.Is(err, ErrSinkEmpty) {
		if ctx.Err() == nil { // else the replica stops, and that is no failure
			s.openFailed(err)
		}
		s.waited() // the copy begins without it in any case
		return Kept{}, fmt.Errorf("the %s could not be opened: %w", s.policy.Name, err)
	}
	var objects []Change[T]
	if err == nil && len(kept.Positions) > 0 {
		objects, err = s.sink.(Restorer[T]).Load(ctx)
	}
	if errors.Is(err, ErrSinkEmpty) {
		kept, err = kept.empty(), nil
	}
	if err == nil && len(kept.Positions) == 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.follow(Positions{}, true)
		return kept, nil
	}
	h.startRestore()
	if err == nil {
		err = h.fill(objects, kept.Positions)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.restored(false) // where nothing could be loaded
	if !Taken(err) {
		s.distrust(kept.positions())
		return kept.empty(), err
	}
	s.follow(kept.positions(), false)
	if dropErr := h.begin(kept, sections, true); dropErr != nil {
		s.distrust(kept.positions())
		return kept.empty(), dropErr
	}
	return kept, err
}

// fill brings the empty store to what was loaded.
func (h *fanout[T]) fill(objects []Change[T], positions []Position) error {
	for i := range objects {
		var err error
		if objects[i].Object, err = freeze(h.guard, objects[i].Key, objects[i].Object); err != nil {
			return err
		}
	}
	err := h.store.Apply(objects, positions[0])
	for _, p := range positions[1:] {
		if !Taken(err) {
			break
		}
		err = errors.Join(err, h.store.Apply(nil, p))
	}
	return err
}

// follow lets the sink have every change from now on. whole says that what it holds must
// be removed by the first commit.
func (s *sinkRunner[T]) follow(from Positions, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start(from)
	s.state, s.queue.whole = sinkFollowing, whole
}

// distrust has the sink be sent everything once the copy is synced, because what it holds
// could not be used.
func (s *sinkRunner[T]) distrust(held Positions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start(held)
	s.state, s.distrusted = sinkWaiting, true
	s.signal()
}

// start records what the sink holds, and leaves the queue empty. mu is held.
func (s *sinkRunner[T]) start(from Positions) {
	s.waited()
	s.committed, s.ahead, s.skipped, s.taken = from, nil, nil, queueSize{}
	s.queue = sinkQueue[T]{policy: s.policy, from: from.Clone(), at: from.Clone()}
}

// flushNow is what a sink calls to commit what waits.
func (s *sinkRunner[T]) flushNow() error { return s.flush(s.running) }

// startSinks lets the sinks run, and waits for those that open soon.
func (h *fanout[T]) startSinks(ctx context.Context) (stop func()) {
	sinks := h.runners()
	var running sync.WaitGroup
	for _, s := range sinks {
		running.Go(func() {
			s.run(s.running)
			s.close()
		})
	}
	h.awaitOpen(ctx)
	return func() {
		for _, s := range sinks {
			s.stop()
		}
		running.Wait()
	}
}

// awaitOpen waits for the sinks that open soon.
func (h *fanout[T]) awaitOpen(ctx context.Context) {
	timer := h.clock.NewTimer(sinkOpenWait)
	defer timer.Stop()
	for _, s := range h.runners() {
		select {
		case <-s.opened:
		case <-timer.C():
			return
		case <-ctx.Done():
			return
		}
	}
}

// openFailed records why a sink is not open yet. It is opened again by run.
func (s *sinkRunner[T]) openFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteFailure(err)
}

// open asks the sink what it holds.
func (s *sinkRunner[T]) open(ctx context.Context) error {
	if err := s.use(ctx); err != nil {
		return err
	}
	defer s.release()
	kept, err := s.sink.Open(ctx, s.flushNow)
	if errors.Is(err, ErrSinkEmpty) {
		kept, err = kept.empty(), nil
	}
	var foreign bool
	if err == nil {
		foreign, err = s.isForeign(ctx, kept)
	}
	switch {
	case err != nil:
	case foreign:
		s.distrust(kept.positions())
	default:
		s.fanout.attach(s, kept.positions())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteFailure(err)
	return err
}

// attach decides how a sink comes to follow the copy.
func (h *fanout[T]) attach(s *sinkRunner[T], held Positions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start(held)
	copied := h.sectionPositions()
	switch all := held.All(); {
	case len(all) == 0:
		s.state, s.queue.whole = sinkFollowing, true
		if len(copied.All()) > 0 {
			s.queue.replaceAll(s.clock.Now(), h.contact, h.initial(), copied)
		}
	case slices.Equal(all, copied.All()) && !lacking(all):
		s.state = sinkFollowing
	default:
		s.state = sinkWaiting
		// If a synced section is older than the sink, the source went back in time.
		if ahead := aheadOf(all, copied.All()); ahead != nil && !h.anySynced(ahead) {
			s.state, s.ahead = sinkFollowing, ahead
		}
	}
	s.signal()
}

// lacking says whether one of the positions does not tell its content: two copies that
// lack something at the same version need not lack the same, and without a version
// nothing is known.
func lacking(all []Position) bool {
	return slices.ContainsFunc(all, func(p Position) bool { return !p.Complete || p.Version == "" })
}

// anySynced says whether at least one of these sections is synced.
func (h *fanout[T]) anySynced(some map[string]Position) bool {
	return slices.ContainsFunc(h.sections, func(s *sectionState) bool {
		_, named := some[s.position.Section]
		return named && s.synced
	})
}

// sectionSynced records that a section has reached the version of its source. A sink that
// is still ahead has a version that the source no longer has. A sink whose comparison left
// the section out can be compared now.
func (s *sinkRunner[T]) sectionSynced(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ahead := s.ahead[name]; ahead || s.skipped[name] {
		s.waitAgain()
	}
}

// aheadOf returns the positions of a sink that are newer than those of the copy, by
// section; nil if the sink is not ahead in that way in all sections.
func aheadOf(held, copied []Position) map[string]Position {
	if len(held) != len(copied) || lacking(held) || lacking(copied) {
		return nil
	}
	ahead := map[string]Position{}
	for i, at := range held {
		order, comparable := at.Version.Compare(copied[i].Version)
		if at.Section != copied[i].Section || at.Epoch != copied[i].Epoch || !comparable || order < 0 {
			return nil
		}
		if order > 0 {
			ahead[at.Section] = at
		}
	}
	return ahead
}

// reconcile compares what the sink holds with the copy, and queues the differences. A
// sink that cannot say what it holds gets the whole content.
func (s *sinkRunner[T]) reconcile(ctx context.Context) error {
	if err := s.use(ctx); err != nil {
		return err
	}
	defer s.release()
	var held map[Key]Meta
	if lister, ok := s.sink.(SinkLister); ok && !s.distrusted {
		held = map[Key]Meta{}
		for m, err := range lister.Held(ctx) {
			if err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.noteFailure(fmt.Errorf("listing what the sink holds: %w", err))
				return err
			}
			held[m.Key] = m
		}
	}
	unanswered := s.retry
	s.retry = sinkQueue[T]{}
	s.fanout.compare(s, held, unanswered)
	return nil
}

// skipUnreachable leaves out of a comparison the independent sections whose source is
// unreachable, if the copy has no content of them or an older one than the sink. The content
// of the sink is then the newest that is known.
//
//   - If the copy has no content, or one of the two positions is incomplete, the sink is
//     compared again once the section is synced.
//   - If the copy has an older content, the sink is ahead of it until the section has caught
//     up.
func (h *fanout[T]) skipUnreachable(s *sinkRunner[T], held map[Key]Meta, at *Positions) {
	for _, section := range h.sections {
		if !section.independent {
			continue
		}
		name := section.position.Section
		has := s.committed.of(name)
		older := !section.synced && len(has) > 0 && has[0].Epoch == section.position.Epoch && section.position.Version.OlderThan(has[0].Version)
		switch {
		case older && !lacking(has) && section.position.Complete:
			if s.ahead == nil {
				s.ahead = map[string]Position{}
			}
			s.ahead[name] = has[0]
		case older, !section.known():
			if s.skipped == nil {
				s.skipped = map[string]bool{}
			}
			s.skipped[name] = true
		default:
			continue
		}
		for _, p := range has {
			at.Move(p)
		}
		maps.DeleteFunc(held, func(key Key, _ Meta) bool { return key.HasPrefix(section.prefix) })
	}
}

// leftOut says whether a comparison leaves out the section of a key.
func (h *fanout[T]) leftOut(s *sinkRunner[T], key Key) bool {
	return len(s.ahead)+len(s.skipped) > 0 && slices.ContainsFunc(h.sections, func(section *sectionState) bool {
		_, ahead := s.ahead[section.position.Section]
		return (ahead || s.skipped[section.position.Section]) && key.HasPrefix(section.prefix)
	})
}

// compare queues what a sink lacks, and lets it follow. unanswered is a batch whose commit
// failed: the sink may have it nevertheless.
func (h *fanout[T]) compare(s *sinkRunner[T], held map[Key]Meta, unanswered sinkQueue[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	gaps := s.queue.openGaps()
	s.start(s.committed)
	s.queue.gaps = gaps
	s.queue.follows(unanswered)
	s.state, s.distrusted = sinkFollowing, false
	content, now, at := h.initial(), s.clock.Now(), h.sectionPositions()
	if held == nil {
		h.addGapsToUnknown(s)
		s.queue.replaceAll(now, h.contact, content, at)
		return
	}
	h.skipUnreachable(s, held, &at)
	h.addGapsToUnknown(s)
	proof := !wentBack(&s.committed, &at)
	isOlder := h.olderThanSink(&s.committed, &at)
	for _, c := range content {
		if h.leftOut(s, c.Key) {
			continue
		}
		before, known := held[c.Key]
		delete(held, c.Key)
		if known {
			c.Type, c.Rewound = Update, !proof
			if m := h.metaOf(c.Object); proof && m.UID == before.UID && m.Version == before.Version && m.Version != "" {
				continue
			}
		}
		c.Rewound = c.Rewound || isOlder(c)
		s.queue.putHeard(c, h.contact)
	}
	for _, key := range slices.Sorted(maps.Keys(held)) {
		s.queue.putHeard(Change[T]{Type: Delete, Missed: true, Key: key, Version: held[key].Version}, h.contact)
	}
	s.queue.jump(now, h.contact, at)
}

// addGapsToUnknown adds the gaps of sections that a sink had followed, and whose version the
// source has not said: nobody knows where such a gap ends.
func (h *fanout[T]) addGapsToUnknown(s *sinkRunner[T]) {
	for _, section := range h.sections {
		name := section.position.Section
		if section.known() || s.skipped[name] {
			continue
		}
		for _, p := range s.queue.from.All() {
			if p.Section == name && p.Version != "" {
				s.queue.addGap(Gap{Section: name, From: p.Version, Cause: GapReconciled})
			}
		}
	}
}

// olderThanSink tells which states are older than the position of a sink that is compared with
// the copy. There are such states only where one of the two lacks something: the copy holds
// the last good state of an object that it cannot take, or has one that the sink could not
// take. To the sink such a state goes back in time, and the sink has to be notified of that.
func (h *fanout[T]) olderThanSink(committed, at *Positions) func(Change[T]) bool {
	positions := committed.All()
	if !lacking(positions) && !lacking(at.All()) {
		return func(Change[T]) bool { return false }
	}
	reached := map[string]Version{}
	for _, p := range positions {
		reached[p.Section] = p.Version
	}
	return func(c Change[T]) bool {
		i := slices.IndexFunc(h.sections, func(s *sectionState) bool { return c.Key.HasPrefix(s.prefix) })
		return i >= 0 && c.Version.OlderThan(reached[h.sections[i].position.Section])
	}
}
