package protobuf

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// plan says how a type of object is decoded from protobuf. It is compiled from the
// struct's protobuf tags, as the generated code was, down to the depth that objects
// reach.
//
// It is a tree by field path, not a table by type: the place in the object decides
// what is dropped, what stays private and what repeats. Only a type within itself
// (a JSON schema) is planned once for all levels below.
type plan struct {
	root       *node
	mu         sync.Mutex
	fieldCount atomic.Int32
}

// node is how a message at one place of the object is decoded.
type node struct {
	plan   *plan
	parent *node
	path   string // as in JSON, for error messages
	typ    reflect.Type
	// state is decodesItself, proven, or how often the node is still to be compared
	// with the type's own Unmarshal.
	state atomic.Int32
	// clips says that the type's own decoder may leave slices with room to grow.
	clips bool
	// quantities says that the type contains quantities; see [shape.IsLazy].
	quantities bool
	// recursive says that messages of the type can be nested without end.
	recursive bool
	// fields are found by their number.
	fields []field
	// dropping tells nodes apart that leave out a field somewhere below: nonzero,
	// and the same number for the same fields.
	dropping uint64
}

const (
	// decodesItself is the state of a type whose fields have no tags, or are of types
	// that the plan does not know, or whose Unmarshal was seen to do more than the
	// tags say.
	decodesItself = -1
	proven        = 0
)

// maxFieldNumber bounds the table of fields. Kubernetes counts to some sixty.
const maxFieldNumber = 2000

func (p *plan) newNode(parent *node, path string, t reflect.Type) *node {
	n := &node{plan: p, parent: parent, path: path, typ: t}
	n.clips = growable(t, map[reflect.Type]bool{})
	n.quantities = shape.Contains(t, shape.QuantityType, map[reflect.Type]bool{})
	n.recursive = recursive(t, map[reflect.Type]bool{}, map[reflect.Type]bool{})
	n.state.Store(proofs)
	if !n.compile() {
		n.state.Store(decodesItself)
	}
	return n
}

// compile makes the table of fields, and says whether all of them are understood.
func (n *node) compile() bool {
	tagged := 0
	for i := range n.typ.NumField() {
		sf := n.typ.Field(i)
		number, ok := fieldNumber(sf)
		if !ok {
			continue
		}
		tagged++
		if number < 1 || number > maxFieldNumber || !sf.IsExported() {
			return false
		}
		if number >= len(n.fields) {
			n.fields = append(n.fields, make([]field, number+1-len(n.fields))...)
		}
		f := &n.fields[number]
		if f.kind != kindUnknown {
			return false
		}
		if f.init(n, number, sf); f.kind == kindUnknown {
			return false
		}
	}
	return tagged > 0 || n.typ.NumField() == 0
}

// fieldNumber is the number in a tag such as `protobuf:"bytes,1,opt,name=metadata"`.
func fieldNumber(sf reflect.StructField) (int, bool) {
	tag, ok := sf.Tag.Lookup("protobuf")
	if !ok {
		return 0, false
	}
	format, rest, _ := strings.Cut(tag, ",")
	if strings.HasPrefix(format, "zigzag") {
		return 0, true // on the wire it looks like another number
	}
	digits, _, _ := strings.Cut(rest, ",")
	number, err := strconv.Atoi(digits)
	return number, err == nil
}

// child is the node of the messages in a field.
func (f *field) child() *node {
	if n := f.node.Load(); n != nil {
		return n
	}
	return f.newChild()
}

func (f *field) newChild() *node {
	p := f.parent.plan
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := f.node.Load(); n != nil {
		return n
	}
	n := f.ancestor()
	if n == nil {
		n = p.newNode(f.parent, f.path(), f.message)
	}
	f.node.Store(n)
	return n
}

// ancestor finds the type of a field's messages among the nodes above it.
func (f *field) ancestor() *node {
	for n := f.parent; n != nil; n = n.parent {
		if n.typ == f.message && n.dropping == 0 {
			return n
		}
	}
	return nil
}

// path is the JSON path of a field.
func (f *field) path() string {
	switch {
	case f.name == "":
		return f.parent.path
	case f.parent.path == "":
		return f.name
	}
	return f.parent.path + "." + f.name
}
