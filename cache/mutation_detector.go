package cache

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	mutationCheckPeriod = time.Second
	// mutationRetention is for how long, at least, an object is checked after it
	// was last seen; at most it is twice that.
	mutationRetention = 2 * time.Minute
)

// detectMutations is read once, as in client-go: an informer made later in the
// process follows the same setting.
var detectMutations, _ = strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))

// NewCacheMutationDetector gives a detector that prints what was mutated and
// panics, if the environment variable KUBE_CACHE_MUTATION_DETECTOR is true; else
// one that does nothing. [NewMutationDetector] does not depend on it.
func NewCacheMutationDetector(name string) MutationDetector {
	if !detectMutations {
		return noMutationDetector{}
	}
	return NewMutationDetector(name, nil)
}

// NewMutationDetector gives a detector that calls onMutation for each object that
// someone changed although it is in a cache, once per object and from the goroutine
// that Run is called on. Without onMutation it prints the report and panics:
// results cannot be trusted after that.
func NewMutationDetector(name string, onMutation func(MutationReport)) MutationDetector {
	if onMutation == nil {
		onMutation = panicOnMutation
	}
	return &mutationDetector{name: name, onMutation: onMutation, rotated: time.Now()}
}

func panicOnMutation(report MutationReport) {
	fmt.Println(report)
	panic(fmt.Sprintf("cache %s modified: %s %s; copy objects with DeepCopy before changing them", report.Cache, report.Type, report.Key))
}

type noMutationDetector struct{}

func (noMutationDetector) AddObject(any)       {}
func (noMutationDetector) Run(<-chan struct{}) {}

// mutationDetector compares objects with copies that it took when it first saw
// them.
//
// An informer shows it the same object again and again: as the new one of an
// update, then as the old one of the next. It is held once, by its identity, in
// one of two generations; every mutationRetention the elder is dropped, and an
// object that is seen again moves to the younger. That bounds the memory by the
// objects seen in the last four minutes, whether or not anybody calls Run, and
// needs no timestamp for each object.
type mutationDetector struct {
	name       string
	onMutation func(MutationReport)

	mu             sync.Mutex
	younger, elder map[any]runtime.Object // cached object -> its copy
	rotated        time.Time
}

// AddObject copies an object that is new to the detector. It ignores an object that
// is not a [runtime.Object] and cannot be copied.
func (d *mutationDetector) AddObject(obj any) {
	object, ok := obj.(runtime.Object)
	if !ok || reflect.TypeOf(object).Kind() != reflect.Pointer || reflect.ValueOf(object).IsNil() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rotate()
	if _, seen := d.younger[obj]; seen {
		return
	}
	original, seen := d.elder[obj]
	if seen {
		delete(d.elder, obj)
	} else {
		original = object.DeepCopyObject()
	}
	if d.younger == nil {
		d.younger = map[any]runtime.Object{}
	}
	d.younger[obj] = original
}

// Run checks every second until stopCh is closed, and once more then.
func (d *mutationDetector) Run(stopCh <-chan struct{}) {
	next := time.NewTicker(mutationCheckPeriod)
	defer next.Stop()
	for {
		d.check()
		select {
		case <-next.C:
		case <-stopCh:
			d.check()
			return
		}
	}
}

// check compares without the lock, which AddObject, and with it the informer,
// would wait for.
func (d *mutationDetector) check() {
	for cached, original := range d.monitored() {
		changes := fieldChanges(original, cached)
		if len(changes) == 0 {
			continue
		}
		d.forget(cached)
		key, err := MetaNamespaceKeyFunc(original)
		if err != nil {
			key = "(no key: " + err.Error() + ")"
		}
		d.onMutation(MutationReport{Cache: d.name, Type: fmt.Sprintf("%T", cached), Key: key, Changes: changes})
	}
}

func (d *mutationDetector) monitored() map[any]runtime.Object {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rotate()
	all := make(map[any]runtime.Object, len(d.younger)+len(d.elder))
	maps.Copy(all, d.younger)
	maps.Copy(all, d.elder)
	return all
}

func (d *mutationDetector) forget(cached any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.younger, cached)
	delete(d.elder, cached)
}

// rotate needs the lock.
func (d *mutationDetector) rotate() {
	if time.Since(d.rotated) > mutationRetention {
		d.younger, d.elder = nil, d.younger
		d.rotated = time.Now()
	}
}
