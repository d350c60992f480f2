package storetest_test

import (
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/storetest"
)

// One test runs the whole suite over a package's store.
func ExampleRun() {
	_ = func(t *testing.T) { // TestStore, in the store's own package
		storetest.Run(t, func(t *testing.T) tarn.ReadStore[storetest.Object] {
			return memory.New[storetest.Object]()
		})
	}
	// Output:
}
