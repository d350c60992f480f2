package cache

import (
	"time"

	"k8s.io/klog/v2"
)

// shortestResync is the least period that a handler may ask for.
const shortestResync = time.Second

// resyncs is when an informer offers everything again.
type resyncs struct {
	// check is how often handlers are looked at; 0 means no resyncs at all. It
	// is fixed when the informer starts.
	check time.Duration
	// standard is the period of handlers that ask for none.
	standard time.Duration
}

// resyncSchedule is when one handler is due.
type resyncSchedule struct {
	// asked is the handler's requested period, at least shortestResync; period is
	// the actual one.
	asked, period time.Duration
	next          time.Time
}

// plan makes the schedule of a new handler. Before the start a short period
// makes the informer look more often; afterwards the handler must be content
// with how often it looks. The caller holds the lock.
func (s *informer) plan(logger klog.Logger, asked time.Duration) resyncSchedule {
	if asked < 0 {
		logger.Info("Warning: a negative resync period means none", "resyncPeriod", asked)
		asked = 0
	}
	if asked > 0 && asked < shortestResync {
		logger.Info("Warning: the resync period is too short and was raised", "resyncPeriod", asked, "to", shortestResync)
		asked = shortestResync
	}
	if asked > 0 && asked < s.resyncs.check {
		if s.started {
			logger.Info("Warning: the informer already runs and resyncs less often; the resync period was raised", "resyncPeriod", asked, "to", s.resyncs.check)
			asked = s.resyncs.check
		} else {
			s.resyncs.check = asked
			for _, h := range s.handlers {
				h.resync.period = s.resyncs.period(logger, h.resync.asked)
			}
		}
	}
	schedule := resyncSchedule{asked: asked, period: s.resyncs.period(logger, asked)}
	schedule.next = time.Now().Add(schedule.period)
	return schedule
}

// period is the actual resync period of a handler that requests one.
func (r resyncs) period(logger klog.Logger, asked time.Duration) time.Duration {
	if asked > 0 && r.check == 0 {
		logger.Info("Warning: this shared informer does not resync; the resync period is ignored", "resyncPeriod", asked)
		return 0
	}
	if asked > 0 {
		return max(asked, r.check)
	}
	return 0
}

// shouldResync finds out which handlers are due and whether any is.
func (s *informer) shouldResync() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	any := false
	for _, h := range s.handlers {
		due := h.resync.period > 0 && !now.Before(h.resync.next)
		h.resyncing.Store(due)
		if due {
			h.resync.next = now.Add(h.resync.period)
			any = true
		}
	}
	return any
}
