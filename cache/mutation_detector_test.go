package cache

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// detect runs a detector in a bubble; wait lets it look once more.
func detect(t *testing.T, story func(d *mutationDetector, reports *[]string, wait func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		d := NewMutationDetector("pods", func(r MutationReport) { reports = append(reports, r.String()) }).(*mutationDetector)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			d.Run(stop)
		}()
		story(d, &reports, func(period time.Duration) {
			time.Sleep(period)
			synctest.Wait()
		})
		close(stop)
		<-done
	})
}

// mutate changes an object so that the race detector does not report it. A report
// would be right, as such a mutation is a race with every reader of the cache.
func mutate(d *mutationDetector, change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func TestMutationIsReportedOnce(t *testing.T) {
	detect(t, func(d *mutationDetector, reports *[]string, wait func(time.Duration)) {
		pod := mutationPod()
		d.AddObject(pod)
		d.AddObject(mutationPod())
		wait(10 * time.Second)
		if len(*reports) > 0 {
			t.Fatalf("reported %q", *reports)
		}
		mutate(d, func() { pod.Name, pod.Spec.Containers[0].Image = "renamed", "b" })
		wait(10 * time.Second)
		want := "[CACHE pods ALTERED! *v1.Pod x/a\n\tmetadata.name: \"a\" -> \"renamed\"\n\tspec.containers[0].image: \"a\" -> \"b\"]"
		if got := fmt.Sprint(*reports); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestMutationJustBeforeTheEndIsReported(t *testing.T) {
	var got *[]string
	detect(t, func(d *mutationDetector, reports *[]string, wait func(time.Duration)) {
		pod := mutationPod()
		d.AddObject(pod)
		wait(time.Millisecond)
		got = reports
		mutate(d, func() { pod.Name = "b" })
	})
	if len(*got) != 1 {
		t.Errorf("reported %q", *got)
	}
}

func TestObjectsAreHeldOnceAndNotForEver(t *testing.T) {
	detect(t, func(d *mutationDetector, reports *[]string, wait func(time.Duration)) {
		old, current := mutationPod(), mutationPod()
		d.AddObject(old)
		for range 5 * 60 { // the informer shows the current one every second
			d.AddObject(current)
			wait(time.Second)
		}
		if held := d.monitored(); len(held) != 1 || held[current] == nil {
			t.Errorf("%d objects are held", len(held))
		}
		mutate(d, func() { current.Name = "b" }) // first seen five minutes ago
		wait(2 * time.Second)
		if len(*reports) != 1 {
			t.Errorf("reported %q", *reports)
		}
		wait(5 * time.Minute)
		if held := d.monitored(); len(held) != 0 {
			t.Errorf("%d objects are still held", len(held))
		}
	})
}

// A detector that is not run is a mistake, but must not use up all memory.
func TestDetectorThatNobodyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMutationDetector("pods", nil).(*mutationDetector)
		for range 1000 {
			d.AddObject(mutationPod())
			time.Sleep(time.Second)
		}
		if n := len(d.younger) + len(d.elder); n > 250 {
			t.Errorf("%d objects are held", n)
		}
	})
}

func TestDetectorIgnoresWhatItCannotCopy(t *testing.T) {
	d := NewMutationDetector("pods", nil).(*mutationDetector)
	for _, obj := range []any{nil, 42, (*corev1.Pod)(nil), DeletedFinalStateUnknown{Obj: mutationPod()}} {
		d.AddObject(obj)
	}
	if held := d.monitored(); len(held) > 0 {
		t.Errorf("held %v", held)
	}
}

func TestDetectorPanicsByDefault(t *testing.T) {
	d := NewMutationDetector("pods", nil).(*mutationDetector)
	pod := mutationPod()
	d.AddObject(pod)
	pod.Name = "b"
	defer func() {
		if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "cache pods modified: *v1.Pod x/a") {
			t.Errorf("recovered %s", p)
		}
	}()
	d.check()
}

func TestDetectorOfTheEnvironment(t *testing.T) {
	defer func(was bool) { detectMutations = was }(detectMutations)
	detectMutations = false
	off := NewCacheMutationDetector("pods")
	off.AddObject(mutationPod())
	off.Run(nil) // returns at once
	detectMutations = true
	if _, ok := NewCacheMutationDetector("pods").(*mutationDetector); !ok {
		t.Error("the environment variable is not heeded")
	}
}
