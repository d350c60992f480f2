package kube

import (
	"testing"
	"testing/synctest"
)

// The writer waits when the inbox is full, until it is half empty; stop ends the
// wait.
func TestReadingAheadGoesOnAtHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = maxQueuedBytes / 8
		inbox, stop := newInbox(), make(chan struct{})
		put := func() chan bool {
			done := make(chan bool, 1)
			go func() { done <- inbox.put([]frame{{raw: make([]byte, size)}}, stop) }()
			synctest.Wait()
			return done
		}
		for range 8 {
			if !<-put() {
				t.Fatal("there was room")
			}
		}
		ninth := put()
		for left := 7; left > 4; left-- {
			if _, err := inbox.take(nil, 1); err != nil {
				t.Fatal(err)
			}
			if synctest.Wait(); len(ninth) > 0 {
				t.Fatalf("reading went on with %d of 8 frames left", left)
			}
		}
		if _, err := inbox.take(nil, 1); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); len(ninth) == 0 || !<-ninth {
			t.Fatal("reading did not go on with half of the frames left")
		}
		for range 3 {
			if !<-put() {
				t.Fatal("there was room")
			}
		}
		last := put()
		close(stop)
		if <-last {
			t.Error("a frame was put where there is no room")
		}
		if frames, _ := inbox.take(nil, 100); len(frames) != 8 {
			t.Errorf("%d frames, put were 8", len(frames))
		}
	})
}
