package synctrack_test

import (
	"fmt"

	"github.com/tarnproject/tarn/cache/synctrack"
)

// A controller that works through keys in parallel knows when it has seen the
// whole first state: each item of it was started and finished, and upstream had
// no more.
func ExampleAsyncTracker() {
	tracker := synctrack.NewAsyncTracker[string]("pods")
	tracker.Start("a")
	tracker.Start("b")
	tracker.UpstreamHasSynced()
	tracker.Finished("b")
	fmt.Println("one left:", tracker.HasSynced())
	tracker.Finished("a")
	fmt.Println("none left:", tracker.HasSynced())

	// Output:
	// one left: false
	// none left: true
}

// A value that is costly to compute is computed when somebody asks for it, and
// again only after something has changed.
func ExampleLazy() {
	computed := 0
	sum := synctrack.Lazy[int]{Evaluate: func() (int, error) { computed++; return computed * 10, nil }}
	a, _ := sum.Get()
	b, _ := sum.Get()
	sum.Notify()
	c, _ := sum.Get()
	fmt.Println(a, b, c)

	// Output: 10 10 20
}
