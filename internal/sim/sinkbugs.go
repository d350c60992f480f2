package sim

import (
	"context"
	"slices"

	"github.com/tarnproject/tarn"
)

// sink puts a bug of the runner before a sink.
func (b Bug) sink(right *attached) tarn.Sink[*Object] {
	if b < ForgottenDeletes {
		return right
	}
	return &buggySink{attached: right, bug: b}
}

type buggySink struct {
	*attached
	bug     Bug
	commits int
}

func (s *buggySink) Commit(ctx context.Context, b tarn.Batch[*Object]) error {
	s.commits++
	switch s.bug {
	case ForgottenDeletes:
		if slices.ContainsFunc(b.Gaps, func(g tarn.Gap) bool { return g.Cause == tarn.GapReconciled }) {
			b.Changes = slices.DeleteFunc(slices.Clone(b.Changes), func(c tarn.Change[*Object]) bool { return c.Type == tarn.Delete })
		}
	case PositionFirst:
		first := b
		first.Whole, first.Changes = false, nil
		if err := s.attached.Commit(ctx, first); err != nil {
			return err
		}
	case SilentFold:
		b.Gaps = slices.DeleteFunc(slices.Clone(b.Gaps), func(g tarn.Gap) bool { return g.Cause == tarn.GapFolded })
	case SilentRelist:
		b.Gaps = slices.DeleteFunc(slices.Clone(b.Gaps), func(g tarn.Gap) bool { return g.Cause == tarn.GapRead })
	case SilentBad:
		b.Gaps = slices.DeleteFunc(slices.Clone(b.Gaps), func(g tarn.Gap) bool { return g.Cause == tarn.GapBad })
	case GivenTwice:
		if len(b.Changes) > 0 && s.commits%3 == 0 && !b.Whole {
			b.Changes = append(slices.Clone(b.Changes), b.Changes[0])
		}
	case LostRetry:
		if b.Again {
			b.Changes = nil
		}
	}
	return s.attached.Commit(ctx, b)
}
