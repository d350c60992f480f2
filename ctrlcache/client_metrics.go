package ctrlcache

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// waitSeconds is the metric of controller-runtime's client with read-your-writes
// consistency; nil if it is registered there with another meaning.
var waitSeconds = findWaitSeconds()

// findWaitSeconds returns the metric that controller-runtime has registered. A version
// that has none gets ours.
func findWaitSeconds() *prometheus.HistogramVec {
	// A metric of the same name, labels and help text counts as the same.
	own := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                            "controller_runtime_client_consistency_wait_duration_seconds",
		Help:                            "Length of time waiting for the cache to observe writes before serving reads.",
		Buckets:                         []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 6, 8, 10},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"operation", "result"})
	err := metrics.Registry.Register(own)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		theirs, _ := registered.ExistingCollector.(*prometheus.HistogramVec)
		return theirs
	}
	if err != nil {
		return nil
	}
	return own
}

// Get reads one object, as soon as the cache shows what the client has written.
func (c *ownClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if (&client.GetOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		return c.Client.Get(ctx, key, object, opts...)
	}
	t := &waitTimer{}
	err := c.Client.Get(ctx, key, object, append(slices.Clip(opts), t)...)
	c.observe(t, "get", object, err)
	return err
}

// List reads many objects, as soon as the cache shows what the client has written.
func (c *ownClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if (&client.ListOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		return c.Client.List(ctx, list, opts...)
	}
	t := &waitTimer{}
	err := c.Client.List(ctx, list, append(slices.Clip(opts), t)...)
	c.observe(t, "list", list, err)
	return err
}

// observe records the wait of a read of this object, or list, which returned err.
func (c *ownClient) observe(t *waitTimer, operation string, object runtime.Object, err error) {
	if err != nil {
		// A read of an unknown kind ends before anything is read. controller-runtime counts
		// it as a wait that failed.
		if _, unknown := apiutil.GVKForObject(object, c.options.Scheme); unknown != nil {
			t.start()
		}
	}
	t.observe(operation, err)
}

// waitTimer measures how long a read through the client waits, for its informer to sync
// and for the client's writes.
//
// It reaches the cache as an option of the read, which changes nothing in the options. The
// client cannot measure this itself: the time of a read also has what follows the wait, and
// a read that the server answers does not wait at all.
type waitTimer struct {
	began  time.Time
	waited time.Duration
	// waiting is true from start to stop: an error meanwhile is one of the wait.
	waiting bool
}

func (*waitTimer) ApplyToGet(*client.GetOptions)   {}
func (*waitTimer) ApplyToList(*client.ListOptions) {}

// timerIn returns the timer among the options of a read, or nil.
func timerIn[O any](opts []O) *waitTimer {
	for _, opt := range opts {
		if t, ok := any(opt).(*waitTimer); ok {
			return t
		}
	}
	return nil
}

func (t *waitTimer) start() {
	if t != nil && !t.waiting {
		t.began, t.waiting = time.Now(), true
	}
}

func (t *waitTimer) stop() {
	if t != nil && t.waiting {
		t.waited, t.waiting = t.waited+time.Since(t.began), false
	}
}

// observe records the wait of a read that returned err.
func (t *waitTimer) observe(operation string, err error) {
	result := "success"
	if t.waiting {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			result = "timeout"
		case err != nil:
			result = "error"
		}
	}
	t.stop()
	if waitSeconds != nil {
		waitSeconds.WithLabelValues(operation, result).Observe(t.waited.Seconds())
	}
}
