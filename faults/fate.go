package faults

import (
	"fmt"
	"time"
)

// fate is the bad end that a stream will come to: after some events or some
// time, whatever is first, because a stream may be busy or quiet.
type fate struct {
	dice   *dice
	events int
	at     time.Time
	born   time.Time
}

// streamFates are tried in this order; a stream has one end only.
var streamFates = [...]Kind{Stall, CutEnd, CutExpire, CutBusy, CutInternal, CutFail}

// fate decides about a stream that begins now. It returns nil for a stream that
// will live as long as its source lets it.
func (r *request) fate() *fate {
	limits := r.plan.limits
	for _, kind := range streamFates {
		if d := r.dice(kind); d.comesUp() {
			now := time.Now()
			return &fate{
				dice:   d,
				events: int(count(d.Rand, int64(limits.Events))),
				at:     now.Add(upTo(d.Rand, limits.Life)),
				born:   now,
			}
		}
	}
	return nil
}

// due says whether the time has come, after so many events.
func (f *fate) due(events int) bool {
	return f != nil && (events >= f.events || !time.Now().Before(f.at))
}

// happens makes it so, unless the plan spares the stream.
func (f *fate) happens(events int) bool {
	return f.dice.happens(fmt.Sprintf("after %d events, %s", events, short(time.Since(f.born))))
}

// end is the error of the stream's end; nil for silence.
func (f *fate) end() error {
	switch f.dice.kind {
	case Stall:
		return nil
	case CutBusy:
		if f.dice.IntN(2) == 0 {
			return failure(CutBusy, f.dice.retryAfter())
		}
	}
	return failure(f.dice.kind, 0)
}
