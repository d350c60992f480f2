package mirror

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn"
)

func TestHistory(t *testing.T) {
	inBubble(t, func(r *rig) {
		m, end := r.start(Options{}, "configmaps")
		defer end()
		r.synced(m)
		table := r.table(m, "configmaps")
		if h := table.History(); len(h) != 0 {
			r.Errorf("at once: %v", h)
		}
		time.Sleep(500 * time.Millisecond) // between the samples, from here on
		for i := range 20 {
			for j := range 5 {
				r.put("a", fmt.Sprint(i, "-", j))
			}
			time.Sleep(time.Second)
		}
		if rate := table.Status().EventsPerSecond; rate < 4 || rate > 6 {
			r.Errorf("%v events a second, want 5", rate)
		}
		h := table.History()
		if len(h) != 20 {
			r.Fatalf("%d samples", len(h))
		}
		for i, s := range h {
			if s.Objects != 5*(i+1) || s.EventsPerSecond != 5 || s.Age != 500*time.Millisecond {
				r.Errorf("sample %d: %+v", i, s)
			}
			if i > 0 && s.Time.Sub(h[i-1].Time) != sampleEvery {
				r.Errorf("sample %d comes %s after the one before", i, s.Time.Sub(h[i-1].Time))
			}
		}
		if last := h[len(h)-1]; last.BytesPerObject == 0 || last.BytesPerObject != table.Status().BytesPerObject {
			r.Errorf("%d bytes per object", last.BytesPerObject)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		h = table.History()
		if len(h) != maxSamples || h[0].EventsPerSecond > 1 || table.Status().EventsPerSecond > 1 {
			r.Errorf("%d samples, %v events a second when all is quiet", len(h), table.Status().EventsPerSecond)
		}
		if h[0].Time.Before(time.Now().Add(-6 * time.Minute)) {
			r.Errorf("the oldest sample is of %s", h[0].Time)
		}
		if again := table.History(); &again[0] == &h[0] {
			r.Error("the history is not the reader's own")
		}
	})
}

// A subscriber that does not take its changes causes a lag, and so does a batch that
// takes its time to be in the copy.
func TestLagIsSampled(t *testing.T) {
	inBubble(t, func(r *rig) {
		m, end := r.start(Options{}, "configmaps")
		defer end()
		r.synced(m)
		table := r.table(m, "configmaps")
		held, release := make(chan struct{}), make(chan struct{})
		if _, err := table.Replica().Subscribe(func(tarn.Change[Object]) {
			held <- struct{}{}
			<-release
		}, tarn.SubscribeOptions{}); err != nil {
			r.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if lag := table.Status().Lag; lag != 0 {
			r.Errorf("a lag of %s with nothing to do", lag)
		}
		r.put("a", "one")
		<-held
		time.Sleep(10*time.Second + 500*time.Millisecond)
		if lag := table.Status().Lag; lag < 9*time.Second || lag > 11*time.Second {
			r.Errorf("after ten seconds in which nothing was taken the lag is %s", lag)
		}
		close(release)
		time.Sleep(3 * time.Second)
		h := table.History()
		if last := h[len(h)-1].Lag; last != 0 {
			r.Errorf("the lag is still %s", last)
		}
		if before := h[len(h)-5].Lag; before < 5*time.Second {
			r.Errorf("the history has forgotten the lag: %s", before)
		}
	})
}

func TestStopwatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w stopwatch
		for _, d := range []time.Duration{2, 5, 3} {
			w.start()
			time.Sleep(d * time.Second)
			w.stop()
		}
		if got := w.longest(); got != 5*time.Second {
			t.Errorf("the longest is %s", got)
		}
		w.start()
		time.Sleep(time.Second)
		if got := w.longest(); got != time.Second {
			t.Errorf("what lasts is %s", got)
		}
		w.stop()
		w.stop()
	})
}
