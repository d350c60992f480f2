package shards

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/testsize"
)

// Whatever happens to processes and network, as long as pauses, work and drift of clocks
// stay below the margin together, no two processes work on the same object; whoever works
// on one has it in its copy; and once nothing happens any more, everything has an owner
// within the bound. TARN_SHARD_SEEDS is how many courses of events are tried.
func TestSimulation(t *testing.T) {
	seeds := uint64(testsize.Of(6, 3))
	if n, err := strconv.ParseUint(os.Getenv("TARN_SHARD_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	var worst time.Duration
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t, 40)
			defer c.close()
			upset := []func(*rand.Rand){c.deleteTable, c.tamper, c.restorer()}[seed%3]
			var group []*process
			for range 2 + random.IntN(3) {
				group = append(group, c.start(drift(random)))
			}
			for range 25 {
				time.Sleep(time.Duration(random.Int64N(int64(testDuration))))
				group = c.disturb(random, group, upset)
			}
			c.mu.Lock()
			c.down = false
			c.mu.Unlock()
			for _, p := range group {
				p.mu.Lock()
				p.cut = false
				p.mu.Unlock()
			}
			calm := time.Now()
			for time.Since(calm) < 4*testDuration {
				time.Sleep(50 * time.Millisecond)
				if c.unowned(group...) > 0 {
					worst = max(worst, time.Since(calm))
				}
			}
			c.balanced(group...)
		})
	}
	t.Logf("after the last disturbance, everything had an owner within %v", worst)
	if worst > 2*testDuration+2*time.Second {
		t.Error("that is too long")
	}
}

// drift is how wrong a clock goes: up to 5 %, which is 0.5 s within the test's duration.
func drift(random *rand.Rand) float64 { return (random.Float64() - 0.5) / 10 }

// disturb lets something happen. upset does something to the Leases.
func (c *cluster) disturb(random *rand.Rand, group []*process, upset func(*rand.Rand)) []*process {
	i := random.IntN(len(group))
	p := group[i]
	switch without := slices.Concat(group[:i], group[i+1:]); random.IntN(10) {
	case 0, 1:
		if len(group) < 6 {
			return append(group, c.start(drift(random)))
		}
	case 2:
		if len(without) > 0 {
			p.kill()
			return without
		}
	case 3:
		if len(without) > 0 {
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
			_ = p.member.Leave(ctx) // others may be cut off, and cannot take over
			cancel()
			p.end()
			return without
		}
	case 4:
		if len(without) > 0 {
			p.end()
			return without
		}
	case 5:
		// Together with the work and the drift, less than the margin.
		p.pause(time.Duration(random.Int64N(int64(testMargin - time.Second))))
	case 6:
		p.mu.Lock()
		p.cut = !p.cut
		p.mu.Unlock()
	case 7:
		c.mu.Lock()
		c.down = !c.down
		c.mu.Unlock()
	case 8, 9:
		upset(random)
	}
	return group
}

// Somebody does one of three kinds of things to the Leases, and not two of them in one course
// of events: docs/shards.md says what is not promised.

// deleteTable lets somebody delete the Lease of the group, or replace any one.
func (c *cluster) deleteTable(random *rand.Rand) {
	all := c.leases("test")
	if len(all) > 0 && random.IntN(4) == 0 {
		c.replace(&all[random.IntN(len(all))])
		return
	}
	for i := range all {
		if all[i].Name == "test" {
			c.remove(&all[i])
		}
	}
}

// tamper lets somebody edit or replace any Lease, or delete that of a member, which may be dead.
func (c *cluster) tamper(random *rand.Rand) {
	all := c.leases("test")
	if len(all) == 0 {
		return
	}
	lease := all[random.IntN(len(all))].DeepCopy()
	switch what := random.IntN(4); {
	case what == 0:
		c.replace(lease)
		return
	case what == 1:
		lease.Labels = nil
	case what == 2:
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = nil, nil
	case lease.Name != "test":
		c.remove(lease)
		return
	}
	if err := c.server.Put(lease); err != nil {
		c.t.Error(err)
	}
}

// restorer makes backups of the cluster, and restores them.
func (c *cluster) restorer() func(*rand.Rand) {
	var backup *apiserver.Snapshot
	return func(random *rand.Rand) {
		if backup == nil || random.IntN(2) == 0 {
			backup = c.server.Snapshot()
			return
		}
		if err := c.server.Restore(backup); err != nil {
			c.t.Error(err)
		}
		backup = nil
	}
}

// replace makes a Lease anew, with the same content.
func (c *cluster) replace(lease *coordinationv1.Lease) {
	c.remove(lease)
	lease.UID, lease.ResourceVersion = "", ""
	if err := c.server.Put(lease); err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) remove(lease *coordinationv1.Lease) {
	if err := c.server.Delete(lease); err != nil && !apierrors.IsNotFound(err) {
		c.t.Error(err)
	}
}
