package json

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// kind says how a Go type takes a JSON value.
type kind uint8

const (
	// irregularKind takes no value: the whole object goes to the stock decoder.
	irregularKind kind = iota
	// stockKind leaves the value, and only that, to the stock decoder.
	stockKind
	dropKind
	boolKind
	intKind
	uintKind
	floatKind
	stringKind
	quotedKind // a scalar in a string
	bytesKind
	sliceKind
	textMapKind     // map[string]string
	untypedMapKind  // map[string]any
	untypedListKind // *[]any
	mapKind
	pointerKind
	structKind
	anyKind
	interfaceKind
	timeKind
	microTimeKind
	durationKind
	intOrStringKind
	quantityKind
	fieldsKind
	rawKind
	unmarshalerKind
	textUnmarshalerKind
)

// plan is how to decode into one Go type.
//
// Why a plan and not generated code, or the reflect package at each step: users bring
// types of their own, and reflect takes ten times as long.
type plan struct {
	kind   kind
	typ    reflect.Type
	size   int
	elem   *plan  // of slices, maps, pointers and quoted values
	scope  *scope // what the options say about this value; nil for most
	shared bool   // looked up in the pool

	compiler *compiler
	fields   atomic.Pointer[fieldTable]
}

// fieldTable are a struct's fields, compiled when the first such struct is met: of
// the hundreds of types that a Pod may consist of, a cluster's pods use a few dozen.
type fieldTable struct {
	byName    map[string]*fieldPlan
	start     int // the id of the position before the first field
	irregular bool
}

// compiler makes the plans of one decoder.
type compiler struct {
	mu    sync.Mutex
	plans map[reflect.Type]*plan // plans without a scope
	ids   int
}

var knownKinds = map[reflect.Type]kind{
	reflect.TypeFor[metav1.Time]():          timeKind,
	reflect.TypeFor[metav1.MicroTime]():     microTimeKind,
	reflect.TypeFor[metav1.Duration]():      durationKind,
	reflect.TypeFor[intstr.IntOrString]():   intOrStringKind,
	reflect.TypeFor[resource.Quantity]():    quantityKind,
	reflect.TypeFor[metav1.FieldsV1]():      fieldsKind,
	reflect.TypeFor[runtime.RawExtension](): rawKind,
	reflect.TypeFor[json.Number]():          stockKind,
}

// plan returns the plan of t under a scope, which may be nil. The caller holds mu.
func (c *compiler) plan(t reflect.Type, s *scope) *plan {
	if s == nil {
		if p := c.plans[t]; p != nil {
			return p
		}
	}
	p := &plan{typ: t, size: int(t.Size()), scope: s, compiler: c}
	if s == nil {
		c.plans[t] = p // before the elements: types may contain themselves
	}
	p.kind = c.kind(p)
	switch p.kind {
	case textMapKind, untypedMapKind, mapKind:
		p.shared = s == nil
	case sliceKind, pointerKind:
		p.shared = s == nil && t.Elem().Size() > 0 // a value without a size has no address of its own
		if p.kind == pointerKind && shape.IsScalar(t.Elem()) {
			p.shared = false
		}
	}
	p.shared = p.shared && !shape.HasLock(t)
	return p
}

func (c *compiler) kind(p *plan) kind {
	t, k := p.typ, p.typ.Kind()
	if p.scope != nil && p.scope.drop {
		return dropKind
	}
	if known, ok := knownKinds[t]; ok {
		return known
	}
	if pointer := reflect.PointerTo(t); k != reflect.Pointer && k != reflect.Interface {
		fromJSON := pointer.Implements(reflect.TypeFor[json.Unmarshaler]())
		fromText := pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
		switch {
		case t.Name() == "" && (fromJSON || fromText):
			return irregularKind // whether it is called depends on where it is
		case fromJSON:
			return unmarshalerKind
		case fromText:
			return textUnmarshalerKind
		}
	}
	switch {
	case k == reflect.Bool:
		return boolKind
	case k >= reflect.Int && k <= reflect.Int64:
		return intKind
	case k >= reflect.Uint && k <= reflect.Uintptr:
		return uintKind
	case k == reflect.Float32 || k == reflect.Float64:
		return floatKind
	case k == reflect.String:
		return stringKind
	case k == reflect.Struct:
		return structKind
	case k == reflect.Interface && t.NumMethod() == 0:
		return anyKind
	case k == reflect.Interface:
		return interfaceKind
	case k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return bytesKind
	case k == reflect.Slice:
		p.elem = c.plan(t.Elem(), p.scope)
		return sliceKind
	case k == reflect.Pointer:
		p.elem = c.plan(t.Elem(), p.scope)
		return pointerKind
	case k == reflect.Map && c.plan(t.Key(), nil).kind == stringKind:
		return c.mapKind(p)
	default:
		return stockKind // arrays, maps with number keys, and errors
	}
}

func (c *compiler) mapKind(p *plan) kind {
	p.elem = c.plan(p.typ.Elem(), nil)
	switch p.elem.kind {
	case stringKind:
		return textMapKind
	case anyKind:
		return untypedMapKind
	}
	return mapKind
}

// structFields returns the fields of a struct's plan.
func (p *plan) structFields() *fieldTable {
	if f := p.fields.Load(); f != nil {
		return f
	}
	c := p.compiler
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := p.fields.Load(); f != nil {
		return f
	}
	f := &fieldTable{byName: map[string]*fieldPlan{}, start: c.ids}
	c.ids++
	all, ok := candidatesOf(p.typ)
	f.irregular = !ok
	for i, from := range choose(all) {
		field := &fieldPlan{name: from.name, lead: `"` + from.name + `":`, bit: i % maxFields, id: c.ids,
			offset: from.offset, hops: from.hops, plan: c.plan(from.field.Type, p.scope.in(from.name))}
		c.ids++
		switch {
		case from.irregular || i >= maxFields:
			field.plan = &plan{kind: irregularKind, typ: from.field.Type}
		case from.quoted && field.plan.kind != dropKind:
			field.plan = quoted(field.plan)
		}
		f.byName[from.name] = field
	}
	p.fields.Store(f)
	return f
}

// quoted is the plan of a scalar that comes in a string.
func quoted(p *plan) *plan {
	switch p.kind {
	case boolKind, intKind, uintKind, floatKind:
		return &plan{kind: quotedKind, typ: p.typ, elem: p}
	}
	return &plan{kind: irregularKind, typ: p.typ}
}
