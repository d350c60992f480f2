package jetstream

import (
	"fmt"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sinktest"
)

// The sink keeps the contract, as a bucket and as a stream of events.
func TestSinkConformance(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	n := 0
	for name, form := range map[string]Bucket{"bucket": {}, "events": {Events: true, Memory: true}} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				n++
				b := form
				b.Name = fmt.Sprintf("bucket-%d", n)
				t.Cleanup(func() { _ = js.DeleteStream(t.Context(), b.stream()) })
				return sinktest.Subject{
					Open: func() tarn.Sink[sinktest.Object] { return newSink(t, js, b) },
					Gaps: func() ([]tarn.Gap, error) { return gapsOf(bucketClient{js, b}) },
				}
			})
		})
	}
}
