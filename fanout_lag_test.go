package tarn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b")
		c := newCopy(t, r, Options[*entry]{})
		want := func(want ...SubscriberLag) {
			t.Helper()
			synctest.Wait()
			if got := c.Subscribers(); !slices.Equal(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		want()
		quick := c.subscribe(SubscribeOptions{Name: "quick"})
		stalled := c.subscribe(SubscribeOptions{})
		release := make(chan struct{})
		stalled.pause = func(Change[*entry]) { <-release }
		c.start()
		synctest.Wait()
		time.Sleep(time.Second)
		want(SubscriberLag{"quick", Lag{}}, SubscriberLag{"subscriber 2", Lag{2, time.Second}})

		read := make(chan struct{})
		go func() {
			defer close(read)
			for range c.Changes(t.Context()) {
				<-release
			}
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		want(SubscriberLag{"quick", Lag{}}, SubscriberLag{"subscriber 2", Lag{2, 2 * time.Second}}, SubscriberLag{"", Lag{2, time.Second}})

		quick.Close()
		close(release)
		want(SubscriberLag{"subscriber 2", Lag{}}, SubscriberLag{"", Lag{}})
		_ = c.stop()
		<-read
		want()
	})
}
