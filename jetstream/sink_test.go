package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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
				b.Name, b.Lease = fmt.Sprintf("bucket-%d", n), time.Second
				t.Cleanup(func() { _ = js.DeleteStream(t.Context(), b.stream()) })
				return sinktest.Subject{
					Open: func() tarn.Sink[sinktest.Object] { return patient{newSink(t, js, b), t} },
					Gaps: func() ([]tarn.Gap, error) { return gapsOf(bucketClient{js: js, bucket: b}) },
				}
			})
		})
	}
}

// patient is a sink that waits for the lease of the one before it: on a busy machine, that one
// may not have the second in which it gives it up.
type patient struct {
	*Sink[object]
	t *testing.T
}

func (p patient) Open(ctx context.Context, flush func() error) (kept tarn.Kept, err error) {
	eventually(p.t, "the lease of the sink before it ends", func() bool {
		kept, err = p.Sink.Open(ctx, flush)
		return !errors.Is(err, ErrFed)
	}, func() string { return err.Error() })
	return kept, err
}
