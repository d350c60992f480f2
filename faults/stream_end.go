package faults

import (
	"fmt"
	"time"
)

// streamEnd is how and when a stream fails: after some events or some time,
// whichever comes first, because a stream may be busy or quiet.
type streamEnd struct {
	injector *injector
	events   int
	at       time.Time
	began    time.Time
}

// streamEnds are tried in this order; a stream has one end only.
var streamEnds = [...]Kind{Stall, CutEnd, CutExpire, CutBusy, CutInternal, CutFail}

// streamEnd draws the end of a stream that begins now. It returns nil for a stream
// that lasts as long as its source lets it.
func (r *request) streamEnd() *streamEnd {
	limits := r.plan.limits
	for _, kind := range streamEnds {
		if d := r.injector(kind); d.draw() {
			now := time.Now()
			return &streamEnd{
				injector: d,
				events:   int(count(d.Rand, int64(limits.Events))),
				at:       now.Add(upTo(d.Rand, limits.Life)),
				began:    now,
			}
		}
	}
	return nil
}

// due reports whether the stream has to end after this number of events.
func (f *streamEnd) due(events int) bool {
	return f != nil && (events >= f.events || !time.Now().Before(f.at))
}

// inject records the end. It returns false if the plan suppresses it.
func (f *streamEnd) inject(events int) bool {
	return f.injector.inject(fmt.Sprintf("after %d events, %s", events, short(time.Since(f.began))))
}

// err is the error that the stream ends with; nil if it stays open and silent.
func (f *streamEnd) err() error {
	switch f.injector.kind {
	case Stall:
		return nil
	case CutBusy:
		if f.injector.IntN(2) == 0 {
			return failure(CutBusy, f.injector.retryAfter())
		}
	}
	return failure(f.injector.kind, 0)
}
