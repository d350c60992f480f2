package shards

import (
	"testing"
	"testing/synctest"
	"time"
)

// The cluster is restored from a backup, in which other members owned the objects than do
// now: no two work on the same object, and members have their parts again when the Leases of
// the backup are over.
func TestClusterRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		group := []*process{c.start(0), c.start(0)}
		c.balanced(group...)
		backup := c.server.Snapshot()
		joined := c.start(0)
		c.balanced(append(group, joined)...)
		group[0].kill()
		group = []*process{group[1], joined}
		c.balanced(group...)
		time.Sleep(testDuration)
		if err := c.server.Restore(backup); err != nil {
			t.Fatal(err)
		}
		time.Sleep(c.latency)
		group = append(group, c.start(0))
		time.Sleep(4 * testDuration)
		c.balanced(group...)
		for _, p := range group {
			if h := p.member.Health(); h.Members != 3 || h.Err != nil {
				t.Errorf("%s: %+v", p.name, h)
			}
		}
	})
}
