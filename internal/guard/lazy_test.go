package guard

import (
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// message is built as protobuf builds its messages.
type message struct {
	state state
	size  int32
	Name  string
	Parts []*message
}

type state struct {
	_    [0]sync.Mutex
	kind *kind
}

// kind describes a type, and leads to the descriptions of many others.
type kind struct {
	name   string
	others []*kind
}

// Describe writes to the message, although it only reads it.
func (m *message) Describe() string {
	if m.state.kind == nil {
		m.state.kind = everyKind
	}
	atomic.StoreInt32(&m.size, int32(len(m.Name)))
	return m.state.kind.name + m.Name
}

// everyKind is one of many that all lead to each other.
var everyKind = func() *kind {
	all := make([]*kind, 20)
	for i := range all {
		all[i] = &kind{name: "kind "}
	}
	for _, k := range all {
		k.others = all
	}
	return all[0]
}()

type route struct {
	Labels map[string]string
	Spec   message
}

// An object whose methods write to it can be read in guard mode, and what a program
// writes to it is found.
func TestObjectsThatWriteToThemselves(t *testing.T) {
	s := session(t)
	made := func() *route {
		return &route{Labels: map[string]string{"a": "b"}, Spec: message{Name: "outer", Parts: []*message{{Name: "inner"}}}}
	}
	read := made()
	read.Spec.Describe() // leads to all kinds from now on
	got := frozen(t, s, "north/a", read)
	for _, m := range []*message{&got.Spec, got.Spec.Parts[0]} {
		if text := m.Describe(); !strings.HasPrefix(text, "kind ") {
			t.Errorf("it is described as %q", text)
		}
	}
	if err := s.Check(); err != nil {
		t.Errorf("reading was taken for a write: %v", err)
	}
	for name, write := range map[string]func(*route){
		"field":  func(r *route) { r.Spec.Name = "another" },
		"nested": func(r *route) { r.Spec.Parts[0].Name = "another" },
		"list":   func(r *route) { r.Spec.Parts = nil },
		"map":    func(r *route) { delete(r.Labels, "a") },
	} {
		s := session(t)
		write(frozen(t, s, "north/a", made()))
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "a program wrote to guard.route north/a in the copy of pods") {
			t.Errorf("%s: the write was reported as %v", name, err)
		}
	}
}

// What a private pointer leads to is not the object's, and may be endless.
func TestPrivatePointersAreKept(t *testing.T) {
	s := session(t)
	type typed struct {
		Name string
		kind *kind
	}
	got := frozen(t, s, "x", &typed{"a", everyKind})
	if got.kind != everyKind || got.Name != "a" {
		t.Errorf("it is %+v", got)
	}
	if !reflect.DeepEqual(got.kind.others, everyKind.others) {
		t.Error("what the pointer leads to is another one")
	}
}
