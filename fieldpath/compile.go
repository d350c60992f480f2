package fieldpath

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// unstructured is the interface of structs that hold decoded JSON, such as
// unstructured.Unstructured.
type unstructured interface{ UnstructuredContent() map[string]any }

var unstructuredType = reflect.TypeFor[unstructured]()

// Check returns an error if objects of this type cannot have the path. Where an
// interface lies on the path, only an object can tell, and Check accepts it.
func (p *Path) Check(t reflect.Type) error {
	if t.Kind() == reflect.Interface {
		return nil
	}
	return p.program(t).err
}

// program returns the path's program for a type.
func (p *Path) program(t reflect.Type) *program {
	if g := p.latest.Load(); g != nil && g.typ == t {
		return g
	}
	g, ok := p.programs.Load(t)
	if !ok {
		g, _ = p.programs.LoadOrStore(t, p.compile(t))
	}
	p.latest.Store(g.(*program))
	return g.(*program)
}

// compile makes the program for objects of a type: pointers to structs,
// structs, or decoded JSON.
func (p *Path) compile(t reflect.Type) *program {
	g := &program{typ: t}
	switch {
	case t.Implements(unstructuredType):
		g.object = func(object any) any { return object.(unstructured).UnstructuredContent() }
		return g
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Struct:
		g.object = func(object any) any { return object }
		return g
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c := compiler{path: p, program: g, at: t}
	for c.done = 0; c.done < len(p.steps); c.done++ {
		if g.err = c.step(p.steps[c.done]); g.err != nil || c.open {
			return g
		}
	}
	g.err = c.end()
	return g
}

type compiler struct {
	path    *Path
	program *program
	at      reflect.Type
	// done counts the finished steps.
	done int
	// open says that the path goes through an interface: the rest is read at run
	// time.
	open bool
}

func (c *compiler) emit(o op) { c.program.ops = append(c.program.ops, o) }

// follow goes through pointers.
func (c *compiler) follow() {
	for c.at.Kind() == reflect.Pointer {
		c.emit(op{code: opFollow})
		c.at = c.at.Elem()
	}
}

func (c *compiler) step(s step) error {
	c.follow()
	c.program.omit = false
	switch kind := c.at.Kind(); {
	case kind == reflect.Interface:
		c.dynamic()
		return nil
	case reflect.PointerTo(c.at).Implements(unstructuredType):
		return c.wrong("its content is known only at run time")
	case kind == reflect.Struct && !c.scalar():
		return c.member(s)
	case kind == reflect.Map && c.at.Key().Kind() == reflect.String:
		return c.entry(s)
	case kind == reflect.Slice && !c.scalar():
		return c.element(s)
	}
	return c.wrong(fmt.Sprintf("%s is a %s, which has nothing inside", c.here(), c.at))
}

// scalar says whether the type is one value in JSON, whatever it is in Go.
func (c *compiler) scalar() bool {
	l, ok := leafOf(c.at)
	return ok && l != leafObject && l != leafList && l != leafMap
}

func (c *compiler) member(s step) error {
	fields := fieldsOf(c.at)
	if s.all {
		return c.wrong(fmt.Sprintf("%s is not a list: * stands for the elements of a list", c.here()))
	}
	f, ok := fields[s.name]
	if !ok {
		best := nearest(s.name, slices.Sorted(maps.Keys(fields)))
		if best == "" {
			return c.wrong(fmt.Sprintf("%s has no fields", c.here()))
		}
		right := slices.Concat(c.path.steps[:c.done], []step{{name: best, index: -1}})
		return c.wrong(fmt.Sprintf("%s has no %q; the nearest is %q", c.here(), s.name, join(right)))
	}
	for _, sf := range f.path {
		c.follow()
		c.emit(op{code: opMove, offset: sf.Offset})
		c.at = sf.Type
	}
	isStruct := c.at.Kind() == reflect.Struct
	c.program.omit = (f.omitEmpty || f.omitZero) && !isStruct
	if f.omitZero && isStruct {
		c.emit(op{code: opUnlessZero, typ: c.at})
	}
	return nil
}

func (c *compiler) entry(s step) error {
	texts := c.at.Elem().Kind() == reflect.String && !reflect.PointerTo(c.at.Elem()).Implements(marshalerType)
	last := c.done == len(c.path.steps)-1
	switch {
	case texts && last && s.all:
		c.emit(op{code: opTexts})
	case texts && last:
		c.emit(op{code: opText, name: s.name})
	case s.all:
		c.emit(op{code: opEntries, typ: c.at})
	default:
		c.emit(op{code: opEntry, typ: c.at, key: reflect.ValueOf(s.name).Convert(c.at.Key())})
	}
	c.at = c.at.Elem()
	return nil
}

func (c *compiler) element(s step) error {
	switch {
	case s.all:
		c.emit(op{code: opEach, size: c.at.Elem().Size()})
	case s.index >= 0:
		c.emit(op{code: opElement, index: s.index, size: c.at.Elem().Size()})
	default:
		list := join(c.path.steps[:c.done])
		right := slices.Concat(c.path.steps[:c.done], []step{{index: -1, all: true}}, c.path.steps[c.done:])
		return c.wrong(fmt.Sprintf("%s is a list: say %q for all its elements, or %s[0] for one", list, join(right), list))
	}
	c.at = c.at.Elem()
	return nil
}

func (c *compiler) dynamic() {
	c.emit(op{code: opDynamic, typ: c.at, rest: c.path.steps[c.done:]})
	c.open = true
}

// end decides how to read the value at the end of the path.
func (c *compiler) end() error {
	if c.at.Kind() == reflect.Pointer {
		c.program.omit = false
	}
	c.follow()
	if c.at.Kind() == reflect.Interface {
		c.dynamic()
		return nil
	}
	l, ok := leafOf(c.at)
	if !ok {
		return c.wrong(fmt.Sprintf("a %s has no value that can be read", c.at))
	}
	c.program.read, c.program.last = l, c.at
	if c.program.omit || l == leafTime {
		// An empty value is missing anyway, so a check of the struct around it is
		// not needed.
		c.program.ops = slices.DeleteFunc(c.program.ops, func(o op) bool { return o.code == opUnlessZero })
	}
	return nil
}

// here names the current position in the path.
func (c *compiler) here() string {
	if c.done == 0 {
		return c.at.String()
	}
	return fmt.Sprintf("%s of %s", join(c.path.steps[:c.done]), c.program.typ)
}

func (c *compiler) wrong(what string) error {
	return fmt.Errorf("field path %q: %s", c.path, what)
}
