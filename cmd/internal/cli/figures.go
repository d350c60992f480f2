package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// meter turns a growing count into a rate over the last ten seconds.
type meter struct{ samples []sample }

type sample struct {
	at    time.Time
	count int64
}

const meterWindow = 10 * time.Second

func (m *meter) rate(now time.Time, count int64) float64 {
	if last := len(m.samples) - 1; last < 0 || now.Sub(m.samples[last].at) >= redrawEvery {
		m.samples = append(m.samples, sample{now, count})
	}
	for len(m.samples) > 2 && now.Sub(m.samples[0].at) > meterWindow {
		m.samples = m.samples[1:]
	}
	elapsed := now.Sub(m.samples[0].at).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return float64(count-m.samples[0].count) / elapsed
}

func rate(perSecond float64) string { return figure(perSecond) + " events/s" }

// figure formats a number that may be small or large.
func figure(x float64) string {
	if x >= 100 {
		return thousands(int(x))
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// thousands formats a number with commas.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// seconds formats a duration in the usual short form: 0.3s, 12s, 4m10s.
func seconds(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	default:
		return d.Round(time.Second).String()
	}
}

// size formats a number of bytes.
func size(bytes uint64) string {
	const unit = 1024
	switch {
	case bytes < unit:
		return fmt.Sprintf("%d B", bytes)
	case bytes < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/unit)
	case bytes < 10*unit*unit:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/unit/unit)
	default:
		return fmt.Sprintf("%.0f MiB", float64(bytes)/unit/unit)
	}
}
