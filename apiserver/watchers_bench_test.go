package apiserver

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkWatchers is how much can be delivered at most. An operation is one
// write, which waits when the slowest watcher is a thousand events behind; what
// counts is deliveries/s.
//
//	go test -run - -bench Watchers -benchtime 2000x ./apiserver
func BenchmarkWatchers(b *testing.B) {
	for _, size := range []int{0, 8 << 10} {
		for _, watchers := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("watchers=%d/padding=%d", watchers, size), func(b *testing.B) {
				audience := newAudience(b, watchers, size)
				b.ResetTimer()
				for i := range b.N {
					audience.write(i)
					for i%100 == 0 && i-audience.slowest() > 1000 {
						time.Sleep(time.Millisecond)
					}
				}
				for audience.slowest() < b.N {
					time.Sleep(time.Millisecond)
				}
				b.StopTimer()
				b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "deliveries/s")
			})
		}
	}
}

// BenchmarkNew is what a test pays for a server of its own.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		server := New(Options{})
		server.Close()
	}
}
