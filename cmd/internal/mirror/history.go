package mirror

import (
	"sync"
	"time"
)

const (
	// sampleEvery is how often tables are sampled, maxSamples how many samples
	// are kept: five minutes, in 21 KB.
	sampleEvery = time.Second
	maxSamples  = 300
	// rateSpan is the number of samples for the rate of events: long enough for a readable
	// figure, short enough to show a burst.
	rateSpan = 10
)

// history is a ring of samples.
type history struct {
	mu      sync.Mutex
	samples [maxSamples]Sample
	// events counts those up to each sample.
	events [maxSamples]int64
	// taken counts the samples ever taken.
	taken int
	// began is when the table was started.
	began time.Time
}

func (h *history) add(s Sample, events int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, before := h.began, int64(0)
	if h.taken > 0 {
		last := (h.taken - 1) % maxSamples
		since, before = h.samples[last].Time, h.events[last]
	}
	s.EventsPerSecond = perSecond(events-before, s.Time.Sub(since))
	at := h.taken % maxSamples
	h.samples[at], h.events[at] = s, events
	h.taken++
}

// rate is the recent number of events per second, given their number now.
func (h *history) rate(now time.Time, events int64) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, before := h.began, int64(0)
	if at := h.taken - rateSpan; at >= 0 {
		since, before = h.samples[at%maxSamples].Time, h.events[at%maxSamples]
	}
	return perSecond(events-before, now.Sub(since))
}

// perSecond does not treat a moment as a measurement: it counts less than the time of a
// sample as that time.
func perSecond(events int64, in time.Duration) float64 {
	return float64(events) / max(in, sampleEvery).Seconds()
}

// lag is the lag of the last sample.
func (h *history) lag() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken == 0 {
		return 0
	}
	return h.samples[(h.taken-1)%maxSamples].Lag
}

func (h *history) list() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]Sample, 0, min(h.taken, maxSamples))
	for i := h.taken - cap(list); i < h.taken; i++ {
		list = append(list, h.samples[i%maxSamples])
	}
	return list
}
