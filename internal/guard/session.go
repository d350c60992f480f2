package guard

import (
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Variable is the environment variable that turns guard mode on.
const Variable = "TARN_GUARD"

// FromEnvironment says whether the environment turns guard mode on.
func FromEnvironment() bool {
	switch os.Getenv(Variable) {
	case "", "0", "false":
		return false
	}
	return true
}

// checkEvery is how often maps are compared.
const checkEvery = time.Second

// Session freezes the objects of one copy.
type Session struct {
	name string
	log  *record

	mu   sync.Mutex
	maps []heldMap
}

// heldMap is a map of a frozen object.
type heldMap struct {
	watchedMap
	object string
}

// NewSession returns a session for a copy of this name. The first of a process says on
// standard error how a crash is read.
func NewSession(name string) (*Session, error) {
	if !Supported {
		return nil, fmt.Errorf("%s is set, and this system has no memory that can be made read-only: unset it", Variable)
	}
	log, err := openRecord()
	if err != nil {
		return nil, err
	}
	active.Store(true)
	return &Session{name: name, log: log}, nil
}

var active atomic.Bool

// Active says whether the process has had a session.
func Active() bool { return active.Load() }

// Freeze returns a copy of an object that cannot be written, if the object is a pointer to
// a struct. Any other value, and one for which there is no memory, is returned as it is. So
// is an object with a lock or a message of protobuf in it, which writes to itself when it
// is read; it is compared every second, as maps are.
func (s *Session) Freeze(key string, object any) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = object, fmt.Errorf("guard: %T %s changed while it was copied: %v", object, key, v)
		}
	}()
	pointer := reflect.ValueOf(object)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() || pointer.Type().Elem().Kind() != reflect.Struct {
		return object, nil
	}
	name := fmt.Sprintf("%s %s", pointer.Type().Elem(), key)
	if reachesLazy(pointer.Type()) {
		s.watch(name, []watchedMap{{value: pointer.Elem(), hash: hashOf(pointer.Elem())}})
		return object, nil
	}
	mu.Lock()
	defer mu.Unlock()
	counting := &builder{}
	counting.freeze(pointer)
	memory, err := reserve(counting.used)
	if err != nil {
		return object, err
	}
	b := &builder{memory: memory}
	frozen := b.freeze(pointer)
	if err := protect(memory); err != nil {
		return object, err
	}
	kept = append(kept, b.kept...)
	if err := s.log.add(name, memory, b.parts); err != nil {
		return frozen.Interface(), err
	}
	s.watch(name, b.maps)
	return frozen.Interface(), nil
}

func (s *Session) watch(object string, maps []watchedMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range maps {
		s.maps = append(s.maps, heldMap{m, object})
	}
}

// Check returns an error that names the map of an object that was written to, if there is
// one.
func (s *Session) Check() error {
	s.mu.Lock()
	maps := s.maps
	s.mu.Unlock()
	for _, m := range maps {
		if hashOf(m.value) != m.hash {
			what := m.object
			if m.field != "" {
				what = m.field + " of " + what
			}
			return fmt.Errorf("a program wrote to %s in the copy of %s within the last second; copy an object before you change it", what, s.name)
		}
	}
	return nil
}

// Run compares maps until stop is closed, and once more then. A map that was written to
// ends the process by a panic.
func (s *Session) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-stop:
			s.mustBeUnchanged()
			return
		}
		s.mustBeUnchanged()
	}
}

func (s *Session) mustBeUnchanged() {
	if err := s.Check(); err != nil {
		panic("guard mode: " + err.Error())
	}
}
