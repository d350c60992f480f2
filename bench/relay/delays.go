package main

import (
	"math"
	"sync/atomic"
	"time"
)

// delays counts how late events were, in steps of a sixteenth of a power of two: many
// goroutines add to it, and exact values would be millions.
type delays struct {
	counts [delaySteps * 64]atomic.Int64
	total  atomic.Int64
}

const delaySteps = 16

func (d *delays) add(late time.Duration) {
	i := int(delaySteps * math.Log2(float64(max(late, 1))))
	d.counts[i].Add(1)
	d.total.Add(1)
}

// quantile is the delay that a share of the events does not exceed.
func (d *delays) quantile(share float64) time.Duration {
	left := int64(math.Ceil(share * float64(d.total.Load())))
	for i := range d.counts {
		if left -= d.counts[i].Load(); left <= 0 {
			return time.Duration(math.Exp2(float64(i+1) / delaySteps))
		}
	}
	return 0
}
