package fieldpath

import (
	"reflect"
	"unsafe"
)

// First reads the value of an object: a pointer to a struct, a struct, decoded JSON
// (map[string]any), or an unstructured object. Without a value it is Missing; of
// several values it is the first. The error says that objects of this type cannot
// have the path.
//
// A struct that is not passed by pointer is copied.
func (p *Path) First(object any) (Value, error) {
	g, at, err := p.start(object)
	switch {
	case err != nil:
		return Value{}, err
	case g == nil:
		return Value{}, nil
	case g.object != nil:
		var v Value
		eachDynamic(g.object(object), p.steps, func(found Value) bool {
			v = found
			return false
		})
		return v, nil
	}
	return g.first(0, at), nil
}

// Append appends every value of an object to values, in the object's order, without
// missing ones. See First.
func (p *Path) Append(values []Value, object any) ([]Value, error) {
	g, at, err := p.start(object)
	if g == nil || err != nil {
		return values, err
	}
	add := func(v Value) bool {
		values = append(values, v)
		return true
	}
	if g.object != nil {
		eachDynamic(g.object(object), p.steps, add)
	} else {
		g.each(0, at, add)
	}
	return values, nil
}

// start returns the program for an object and the address to start at; no program
// for nil, which has no values.
func (p *Path) start(object any) (*program, unsafe.Pointer, error) {
	if object == nil {
		return nil, nil, nil
	}
	t := reflect.TypeOf(object)
	g := p.program(t)
	if g.err != nil || g.object != nil {
		return g, nil, g.err
	}
	v := reflect.ValueOf(object)
	if t.Kind() != reflect.Pointer {
		return g, addressable(v), nil
	}
	if v.IsNil() {
		return nil, nil, nil
	}
	return g, v.UnsafePointer(), nil
}

// An Accessor reads a path from objects of one Go type. Compile has checked that
// the type has the path.
type Accessor[T any] struct {
	path *Path
	// direct is the program if T is a pointer to a struct, nil otherwise.
	direct *program
}

// Compile makes an Accessor, or returns an error if T does not have the path. If T
// is an interface, only objects can tell: the Accessor reads Missing from those
// that cannot have the path.
func Compile[T any](text string) (*Accessor[T], error) {
	path, err := Parse(text)
	if err != nil {
		return nil, err
	}
	t := reflect.TypeFor[T]()
	if err := path.Check(t); err != nil {
		return nil, err
	}
	a := &Accessor[T]{path: path}
	if t.Kind() == reflect.Pointer {
		if g := path.program(t); g.object == nil {
			a.direct = g
		}
	}
	return a, nil
}

// Path is what the Accessor reads.
func (a *Accessor[T]) Path() *Path { return a.path }

// First reads the first value of an object, Missing if there is none.
func (a *Accessor[T]) First(object T) Value {
	if a.direct == nil {
		v, _ := a.path.First(object)
		return v
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&object))
	if p == nil {
		return Value{}
	}
	return a.direct.first(0, p)
}

// Append appends every value of an object to values.
func (a *Accessor[T]) Append(values []Value, object T) []Value {
	values, _ = a.path.Append(values, object)
	return values
}
