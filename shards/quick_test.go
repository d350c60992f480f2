package shards

import (
	"testing"
	"testing/synctest"
	"time"
)

// Members come and go faster than what is handed over between them, and the API server is unreachable
// in the middle of it. Nothing has two owners, and in the end everything has one.
func TestQuickChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 60)
		defer c.close()
		var group []*process
		for range 4 {
			group = append(group, c.start(0))
		}
		c.balanced(group...)
		down := func(down bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.down = down
		}
		for round := range 6 {
			group = append(group, c.start(0))
			time.Sleep(time.Duration(10+7*round) * time.Millisecond) // somewhere in the hand-over
			down(round%2 == 1)
			leaving := group[:2:2]
			group = group[2:]
			for _, p := range leaving {
				go func() { _ = p.member.Leave(t.Context()) }()
			}
			time.Sleep(time.Duration(20+9*round) * time.Millisecond)
			down(false)
			for _, p := range leaving {
				p.end()
			}
			group = append(group, c.start(0))
			time.Sleep(time.Duration(round) * time.Second)
		}
		time.Sleep(2 * testDuration)
		c.balanced(group...)
		if c.overlaps > 0 {
			t.Errorf("%d overlaps", c.overlaps)
		}
	})
}
