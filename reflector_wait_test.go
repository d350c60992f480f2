package tarn

import (
	"testing"
	"testing/synctest"
	"time"
)

// The waits of a source that answers, and still is of no use, grow in the end: it is
// not asked again every second for ever.
func TestWaitsBeginAnewNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := waits{clock: realClock{}, series: func() func() time.Duration {
			return DefaultBackoff.Delay(realClock{}, func(time.Duration) time.Duration { return 0 })
		}}
		attempts := 0
		for begin := time.Now(); time.Since(begin) < time.Hour; attempts++ {
			if d := w.delay(nil); attempts < maxRestarts && d != DefaultBackoff.Base {
				t.Errorf("wait %d is %s, although the source has answered", attempts, d)
			} else {
				time.Sleep(d)
			}
			w.restart()
		}
		if least, most := 120, 160; attempts < least || attempts > most {
			t.Errorf("%d attempts in an hour, not between %d and %d", attempts, least, most)
		}
	})
}

// After a calm period the waits may start over five times again.
func TestWaitsAfterACalmPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := waits{clock: realClock{}, series: func() func() time.Duration {
			n := 0
			return func() time.Duration { n++; return time.Duration(n) }
		}}
		quick := func() (n int) {
			for range 2 * maxRestarts {
				w.restart()
				if w.delay(nil) == 1 {
					n++
				}
			}
			return n
		}
		if n := quick(); n != maxRestarts {
			t.Errorf("the waits began anew %d times at first", n)
		}
		time.Sleep(2*restartEvery + time.Second)
		if n := quick(); n != 2 {
			t.Errorf("the waits began anew %d times after 20 minutes", n)
		}
		time.Sleep(maxRestarts * restartEvery)
		if n := quick(); n != maxRestarts {
			t.Errorf("the waits began anew %d times after a calm hour", n)
		}
	})
}
