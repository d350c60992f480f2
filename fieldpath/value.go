package fieldpath

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Kind is the kind of a [Value]. Values of different kinds are ordered by kind, in
// the order of these constants; whole and other numbers count as one kind there.
type Kind uint8

const (
	// Missing is the value of a field that is absent, or null.
	Missing Kind = iota
	Bool
	Int
	Float
	Time
	String
	// Composite is an object or a list: it has no order.
	Composite
)

var kindNames = [...]string{"missing", "bool", "whole number", "number", "time", "string", "object or list"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A Value is the content of a field. Two values that compare as equal are equal by
// ==, so that a Value can be the key of a map. The zero Value is Missing.
//
// A resource.Quantity is a number, a metav1.Time is a time; in decoded JSON both
// are strings, because nothing there says otherwise.
type Value struct {
	kind  Kind
	nanos uint32 // of a Time
	bits  int64  // Bool as 0 or 1, Int, the bits of a Float, seconds of a Time
	text  string
}

// StringValue makes a Value of a string.
func StringValue(s string) Value { return Value{kind: String, text: s} }

// IntValue makes a Value of a whole number.
func IntValue(n int64) Value { return Value{kind: Int, bits: n} }

// BoolValue makes a Value of a bool.
func BoolValue(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.bits = 1
	}
	return v
}

// FloatValue makes a Value of a number. A whole number becomes an Int, so that 2
// and 2.0 are the same; NaN is Missing, because it has no place in any order.
func FloatValue(f float64) Value {
	switch {
	case math.IsNaN(f):
		return Value{}
	case f == math.Trunc(f) && f >= -1<<63 && f < 1<<63:
		return IntValue(int64(f))
	}
	return Value{kind: Float, bits: int64(math.Float64bits(f))}
}

// TimeValue makes a Value of a moment. The zero time is Missing, as it is null
// in the JSON of a metav1.Time.
func TimeValue(t time.Time) Value {
	if t.IsZero() {
		return Value{}
	}
	return Value{kind: Time, bits: t.Unix(), nanos: uint32(t.Nanosecond())}
}

// ValueOf makes a Value of a Go value: a Value, a string, number or bool, a
// time.Time, or nil.
func ValueOf(x any) (Value, error) {
	if v, ok := x.(Value); ok {
		return v, nil
	}
	v := dynamicLeaf(x)
	if v.kind == Composite {
		return Value{}, fmt.Errorf("%T is neither a string, a number, a bool nor a time: it cannot be compared with a field", x)
	}
	return v, nil
}

// Kind is the value's kind.
func (v Value) Kind() Kind { return v.kind }

// IsMissing says whether there is no value.
func (v Value) IsMissing() bool { return v.kind == Missing }

// String is the value as JSON has it, a string without its quotes; empty for
// Missing.
func (v Value) String() string {
	switch v.kind {
	case Bool:
		return strconv.FormatBool(v.bits != 0)
	case Int:
		return strconv.FormatInt(v.bits, 10)
	case Float:
		return strconv.FormatFloat(v.float(), 'g', -1, 64)
	case Time:
		return time.Unix(v.bits, int64(v.nanos)).UTC().Format(time.RFC3339Nano)
	case Composite:
		return v.text
	}
	return v.text
}

// Number is the value as a number, if it is one.
func (v Value) Number() (float64, bool) {
	switch v.kind {
	case Int:
		return float64(v.bits), true
	case Float:
		return v.float(), true
	}
	return 0, false
}

func (v Value) float() float64 { return math.Float64frombits(uint64(v.bits)) }

// Compare orders values: missing ones first, then false and true, numbers, times,
// strings by their bytes. Composites come last, all objects before all lists.
func (v Value) Compare(w Value) int {
	if a, b := v.rank(), w.rank(); a != b {
		return cmp.Compare(a, b)
	}
	switch v.kind {
	case Int, Float:
		return compareNumbers(v, w)
	case Bool, Time:
		return cmp.Or(cmp.Compare(v.bits, w.bits), cmp.Compare(v.nanos, w.nanos))
	}
	return cmp.Compare(v.text, w.text)
}

// rank is the position of the value's kind in the order.
func (v Value) rank() Kind {
	if v.kind == Float {
		return Int
	}
	return v.kind
}

// compareNumbers is exact: a float64 cannot tell large whole numbers apart.
func compareNumbers(v, w Value) int {
	switch {
	case v.kind == Int && w.kind == Int:
		return cmp.Compare(v.bits, w.bits)
	case v.kind == Int:
		return -compareNumbers(w, v)
	case w.kind == Float:
		return cmp.Compare(v.float(), w.float())
	}
	// v is not a whole number, or larger than all of them.
	f := v.float()
	switch {
	case f >= 1<<63:
		return 1
	case f < -1<<63:
		return -1
	}
	if whole := int64(math.Floor(f)); whole >= w.bits {
		return 1
	}
	return -1
}

var (
	anObject = Value{kind: Composite, text: "{…}"}
	aList    = Value{kind: Composite, text: "[…]"}
)
