package sinktest_test

import (
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sinktest"
)

// fileSink stands for a sink that keeps its content in a file.
type fileSink struct{ tarn.Sink[sinktest.Object] }

func newFileSink(path string) *fileSink { return &fileSink{} }

// One test runs the whole suite over a package's sink.
func ExampleRun() {
	_ = func(t *testing.T) { // TestSink, in the sink's own package
		sinktest.Run(t, func(t *testing.T) sinktest.Subject {
			path := t.TempDir() + "/sink"
			return sinktest.Subject{
				Open: func() tarn.Sink[sinktest.Object] { return newFileSink(path) },
			}
		})
	}
	// Output:
}
