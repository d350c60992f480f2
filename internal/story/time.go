package story

import (
	"fmt"
	"strings"
	"time"
)

// A Span is what a time may be, "45s..46s", "2s.." or "..26s"; the zero Span is
// any.
type Span struct{ Least, Most time.Duration }

func parseSpan(text string) (s Span, err error) {
	least, most, ok := strings.Cut(text, "..")
	if !ok {
		return s, fmt.Errorf("%q is not a span such as 2s..3s", text)
	}
	if least != "" {
		if s.Least, err = time.ParseDuration(least); err != nil {
			return s, err
		}
	}
	if most != "" {
		s.Most, err = time.ParseDuration(most)
	}
	return s, err
}

// Includes says whether a time is in the span.
func (s Span) Includes(d time.Duration) bool {
	return d >= s.Least && (s.Most == 0 || d <= s.Most)
}

// backoffs are the waits of the default backoff, each up to twice as long.
var backoffs = []time.Duration{800, 1600, 3200, 6400, 12800, 25600}

// ShowWait is a wait as one of the backoffs, so that its random part does not show.
func ShowWait(d time.Duration) string {
	text := ""
	for _, least := range backoffs {
		if d >= least*time.Millisecond {
			text = fmt.Sprintf("+%.1fs", (least * time.Millisecond).Seconds())
		}
	}
	if text == "" && d >= 10*time.Millisecond {
		return "+" + d.String()
	}
	return text
}

// ShowTimeout is the timeout of a watch as the span that it is chosen from.
func ShowTimeout(d time.Duration) string {
	for _, least := range []time.Duration{5 * time.Minute, 20 * time.Minute} {
		if d >= least && d < 2*least {
			return fmt.Sprintf("%.0fm..%.0fm", least.Minutes(), 2*least.Minutes())
		}
	}
	return d.String()
}
