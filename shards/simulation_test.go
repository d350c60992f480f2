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

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn/internal/testsize"
)

// Whatever happens to processes and network, as long as pauses, work and drift of clocks
// stay below the margin together, no two processes work on the same object; whoever works
// on one has it in its copy; and once nothing happens any more, everything has an owner
// within the bound. TARN_SHARD_SEEDS is how many courses of events are tried.
func TestSimulation(t *testing.T) {
	seeds := uint64(testsize.Of(4, 1))
	if n, err := strconv.ParseUint(os.Getenv("TARN_SHARD_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	var worst time.Duration
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t, 40)
			defer c.close()
			var group []*process
			for range 2 + random.IntN(3) {
				group = append(group, c.start(drift(random)))
			}
			for range 25 {
				time.Sleep(time.Duration(random.Int64N(int64(testDuration))))
				group = c.disturb(random, group, seed%2 == 0)
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

// disturb lets something happen. tables is for tamper.
func (c *cluster) disturb(random *rand.Rand, group []*process, tables bool) []*process {
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
		c.tamper(random, tables)
	}
	return group
}

// tamper lets somebody do something to a Lease: of the group, of a member, or of one that is
// dead. tables says that the group's is deleted. Then those of members are not deleted, and
// keep their labels: docs/shards.md says what is not promised.
func (c *cluster) tamper(random *rand.Rand, tables bool) {
	all := c.leases("test")
	if len(all) == 0 {
		return
	}
	lease := all[random.IntN(len(all))].DeepCopy()
	remove := func() {
		if err := c.server.Delete(lease); err != nil && !apierrors.IsNotFound(err) {
			c.t.Error(err)
		}
	}
	switch what := random.IntN(4); {
	case what == 0: // the same again, with another uid
		remove()
		lease.UID, lease.ResourceVersion = "", ""
	case tables:
		lease.Name = "test"
		remove()
		return
	case what == 1:
		lease.Labels = nil
	case what == 2:
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = nil, nil
	case lease.Name != "test":
		remove()
		return
	}
	if err := c.server.Put(lease); err != nil {
		c.t.Error(err)
	}
}
