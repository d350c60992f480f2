package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// confirmation checks that the rows came from the cluster that is copied now: another
// cluster may be given the same name, or the same address.
type confirmation struct {
	of kube.Origin

	mu sync.Mutex
	// before is what the rows were of when that was first read: the answer to what was recorded
	// since then may have been lost.
	before   *string
	answered bool
	verdict  error

	// now is the identity of the cluster, once it has answered. Commits read it while mu is held
	// for the next question.
	now atomic.Pointer[string]
}

// confirm asks the cluster who it is, once for all sections.
func (k *confirmation) confirm(ctx context.Context, l label) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answered {
		return k.verdict
	}
	now, err := k.of.Identity(ctx)
	if err != nil {
		return err
	}
	if k.before == nil {
		before, err := l.get(ctx)
		if err != nil {
			return err
		}
		k.before = &before
	}
	k.now.Store(&now) // before it is written: see recordAgain
	other, remember := kube.OtherCluster(*k.before, now)
	if remember != *k.before {
		if err := l.set(ctx, remember, other); err != nil {
			return err
		}
	}
	k.answered = true
	if other {
		k.verdict = fmt.Errorf("%w: the rows of %s are of the cluster %s, and this is %s", tarn.ErrOtherSource, l.table, *k.before, now)
	}
	return k.verdict
}

// recordAgain records the cluster in a row that was claimed again: it may be new, because
// somebody dropped the one before, or of another feeder's cluster. A cluster that answers
// meanwhile either is known here already, or is recorded by confirm after the claim.
func (k *confirmation) recordAgain(ctx context.Context, l label) error {
	now := k.now.Load()
	if now == nil {
		return nil
	}
	has, err := l.get(ctx)
	if err != nil {
		return err
	}
	if other, remember := kube.OtherCluster(has, *now); remember != has {
		return l.set(ctx, remember, other)
	}
	return nil
}
