package e2e

import (
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/cache"
)

// mirror is a handler that builds its own copy from events, as a controller does.
// Its copy must become equal to the store, and every event must fit the one before.
type mirror struct {
	mu      sync.Mutex
	objects map[string]metav1.Object
	broken  []string
	// adds, updates and deletes count the steps.
	adds, updates, deletes int
	// steps are the events of scripted pods and custom resources, by key.
	steps map[string][]string
}

var _ cache.ResourceEventHandler = (*mirror)(nil)

func newMirror() *mirror {
	return &mirror{objects: map[string]metav1.Object{}, steps: map[string][]string{}}
}

func (m *mirror) OnAdd(obj any, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adds++
	object := obj.(metav1.Object)
	key := keyOf(object)
	m.step("add", key, object)
	if last, ok := m.objects[key]; ok {
		m.addViolation("add of %s for a key that was there as %s", describe(object), describe(last))
	}
	m.objects[key] = object
}

func (m *mirror) OnUpdate(oldObj, newObj any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updates++
	before, object := oldObj.(metav1.Object), newObj.(metav1.Object)
	key := keyOf(object)
	if mark(before) != mark(object) {
		m.step("update", key, object)
	}
	switch last, ok := m.objects[key]; {
	case !ok:
		m.addViolation("update to %s for a key that was not there", describe(object))
	case describe(last) != describe(before):
		m.addViolation("update to %s from %s, but the last event said %s", describe(object), describe(before), describe(last))
	}
	m.objects[key] = object
}

func (m *mirror) OnDelete(obj any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deletes++
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	object, ok := obj.(metav1.Object)
	if !ok {
		m.addViolation("delete of a %T", obj)
		return
	}
	key := keyOf(object)
	m.step("delete", key, object)
	if _, ok := m.objects[key]; !ok {
		m.addViolation("delete of %s, a key that was not there", describe(object))
	}
	delete(m.objects, key)
}

// step records an event of a scripted pod or custom resource.
func (m *mirror) step(what, key string, object metav1.Object) {
	if state := mark(object); state != "" {
		m.steps[key] = append(m.steps[key], what+"@"+state)
	}
}

// allSteps returns the recorded steps, by key.
func (m *mirror) allSteps() map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.steps)
}

// objectsSeen are the objects that exist according to the events.
func (m *mirror) objectsSeen() map[string]metav1.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects)
}

// addViolation records an invalid event. The first few are enough.
func (m *mirror) addViolation(format string, args ...any) {
	if len(m.broken) < 10 {
		m.broken = append(m.broken, fmt.Sprintf(format, args...))
	}
}

// differences compares the objects seen with a store's content.
func (m *mirror) differences(store map[string]metav1.Object) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return differences(store, m.objects, func(a, b metav1.Object) bool { return describe(a) == describe(b) })
}

// complaints returns the events that did not fit.
func (m *mirror) complaints() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.broken...)
}

func (m *mirror) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%d adds, %d updates, %d deletes", m.adds, m.updates, m.deletes)
}

func keyOf(object metav1.Object) string {
	return cache.MetaObjectToName(object).String()
}

// describe identifies one state of an object.
func describe(object metav1.Object) string {
	return fmt.Sprintf("%s@%s (%s)", keyOf(object), object.GetResourceVersion(), object.GetUID())
}
