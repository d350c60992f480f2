package wire

import (
	"hash/maphash"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// jsonDecoder decodes one type's objects from JSON.
//
// It goes through the bytes once, by a plan compiled for the type, and writes what it
// reads where it belongs; there are no tokens in between. It knows only what
// well-formed servers send. When it meets anything else (a syntax error, a name given
// twice, a number that does not fit, a byte that is not UTF-8) it gives the object
// up, and the stock decoder makes of it what it always did.
type jsonDecoder struct {
	once   sync.Once
	plan   *jsonPlan
	states sync.Pool // of *jsonState
}

var unstructuredType = reflect.TypeFor[unstructured.Unstructured]()

func (j *jsonDecoder) compile(t reflect.Type, opts Options) {
	c := &jsonCompiler{plans: map[reflect.Type]*jsonPlan{}}
	if t == unstructuredType {
		t = freeMapType
	}
	c.mu.Lock()
	j.plan = c.plan(t, jsonScopeOf(opts))
	c.mu.Unlock()
	j.states.New = func() any {
		s := &jsonState{}
		s.texts.seed = maphash.MakeSeed()
		s.pool = opts.Pool
		return s
	}
}

// decodeJSON decodes an object; see [Decoder.JSON].
func (d *Decoder) decodeJSON(raw []byte) (any, error) {
	if object, ok := d.fastJSON(raw); ok {
		return object, nil
	}
	return d.stockJSON(raw)
}

// fastJSON decodes an object if there is nothing odd about it.
func (d *Decoder) fastJSON(raw []byte) (object any, ok bool) {
	d.json.once.Do(func() { d.json.compile(d.objectType, d.opts) })
	memory := reflect.New(d.objectType)
	s := d.json.states.Get().(*jsonState)
	ok = s.whole(d.json.plan, memory.UnsafePointer(), raw)
	d.json.states.Put(s)
	return memory.Interface(), ok
}

// whole decodes an object that raw consists of.
func (s *jsonState) whole(p *jsonPlan, dst unsafe.Pointer, raw []byte) bool {
	i := jsonSpace(raw, 0)
	if i == odd || raw[i] != '{' {
		return false
	}
	s.data, s.depth = raw, 0
	s.begin(len(raw))
	s.texts.shelf = ownShelf
	i = s.fresh(p, dst, i, 0)
	s.data = nil
	return i != odd && jsonSpace(raw, i) == odd
}

// stockJSON decodes an object as everyone does.
func (d *Decoder) stockJSON(raw []byte) (any, error) {
	object := reflect.New(d.objectType).Interface()
	var target any = object
	u, free := object.(*unstructured.Unstructured)
	if free {
		target = &u.Object
	}
	if err := utiljson.Unmarshal(raw, target); err != nil {
		return nil, err
	}
	for _, path := range d.opts.Drop {
		if free {
			dropMember(u.Object, path)
		} else {
			dropFrom(reflect.ValueOf(object), path)
		}
	}
	return object, nil
}

// dropMember takes a member out of an unstructured value that was decoded with it.
func dropMember(x any, path string) {
	switch x := x.(type) {
	case []any:
		for _, element := range x {
			dropMember(element, path)
		}
	case map[string]any:
		name, rest, more := strings.Cut(path, ".")
		if more {
			dropMember(x[name], rest)
		} else {
			delete(x, name)
		}
	}
}
