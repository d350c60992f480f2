package tarn

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A sink may hold the content of another source: of the cluster that had the same address
// before. Its positions are no versions of the present source, and a process that ends before
// it has read a section anew must not leave one from which the next process resumes. A durable
// store does the same with the positions that it writes itself.

// disowning returns what was kept, with checks that have all sinks forget the positions of
// another source. They do so before the section that asked can write anything.
func (h *fanout[T]) disowning(kept Kept) Kept {
	if confirm := kept.Confirm; confirm != nil {
		kept.Confirm = func(ctx context.Context) error {
			err := confirm(ctx)
			if errors.Is(err, ErrOtherSource) {
				h.disown(kept.Positions)
			}
			return err
		}
	}
	if confirm := kept.ConfirmSection; confirm != nil {
		kept.ConfirmSection = func(ctx context.Context, section string) error {
			err := confirm(ctx, section)
			if at, known := kept.of(section); known && errors.Is(err, ErrOtherSource) {
				h.disown([]Position{at})
			}
			return err
		}
	}
	return kept
}

// disown has all sinks forget positions that the copy was loaded with.
func (h *fanout[T]) disown(positions []Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.runners() {
		s.disown(positions)
	}
}

// disown keeps positions of another source from being committed. The gap is committed with
// the first batch that lacks the position: if that is the last one of this process, nobody
// else says that states may be missing.
func (s *sinkRunner[T]) disown(positions []Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range positions {
		if epoch, known := s.foreign[p.Section]; known && epoch == p.Epoch {
			continue
		}
		if s.foreign == nil {
			s.foreign = map[string]string{}
		}
		s.foreign[p.Section] = p.Epoch
		if s.state == sinkFollowing && p.Version != "" {
			s.queue.addGap(Gap{Section: p.Section, From: p.Version, Cause: GapRewound})
		}
	}
}

// batch is what the sink is given of a queue. A section that was read anew is in another
// epoch.
func (s *sinkRunner[T]) batch(q sinkQueue[T]) Batch[T] {
	b := q.batch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.foreign) > 0 {
		b.Positions = slices.DeleteFunc(b.Positions, func(p Position) bool {
			epoch, known := s.foreign[p.Section]
			return known && epoch == p.Epoch
		})
	}
	return b
}

// isForeign asks a sink that the copy was not loaded from whether its content is of another
// source.
func (s *sinkRunner[T]) isForeign(ctx context.Context, kept Kept) (bool, error) {
	if kept.Confirm == nil {
		return false, nil
	}
	timer := newSilenceTimer(ctx, s.clock, probeDeadline)
	defer timer.close()
	err := kept.Confirm(timer.ctx)
	switch {
	case errors.Is(err, ErrOtherSource):
		s.logger.Warn("a sink holds content of another source, which is replaced", "sink", s.policy.Name, "err", err)
		return true, nil
	case err != nil:
		return false, fmt.Errorf("checking that the content of the %s is of this source: %w", s.policy.Name, err)
	}
	return false, nil
}
