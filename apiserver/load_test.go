package apiserver

import (
	"flag"
	"testing"
	"time"
)

var (
	loadWatchers = flag.Int("load.watchers", 100, "how many watch in TestLoad")
	loadRate     = flag.Int("load.rate", 100, "how many writes a second TestLoad makes")
	loadTime     = flag.Duration("load.for", time.Second, "for how long")
)

// TestLoad is the load test: writes come at a steady pace, whether or not anybody
// keeps up, and every watcher must see every one of them, none being further
// behind than a second's worth. It prints what was delivered. What is promised is
// 50,000 deliveries a second to 1,000 watchers on two cores:
//
//	go test -run TestLoad -v ./apiserver -load.watchers 1000 -load.rate 100 -load.for 10s
//
// By default it is a small one, so that it runs with all the others.
func TestLoad(t *testing.T) {
	audience := newAudience(t, *loadWatchers, 0)
	writes := int(loadTime.Seconds() * float64(*loadRate))
	began := time.Now()
	furthest := 0
	for i := range writes {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(*loadRate))))
		audience.write(i)
		if i%10 == 0 {
			furthest = max(furthest, i+1-audience.slowest())
		}
	}
	last := time.Now()
	for audience.slowest() < writes {
		if time.Since(last) > 30*time.Second {
			t.Fatalf("of %d events the slowest watcher has seen %d", writes, audience.slowest())
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(began)
	t.Logf("%d watchers × %d writes in %v: %.0f deliveries/s; the slowest was %d writes behind at most, and had all %v after the last",
		*loadWatchers, writes, took.Round(time.Millisecond), float64(*loadWatchers*writes)/took.Seconds(), furthest, time.Since(last).Round(time.Millisecond))
	if furthest > *loadRate {
		t.Errorf("somebody was %d writes behind, more than a second's worth", furthest)
	}
}
