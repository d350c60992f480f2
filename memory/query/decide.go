package query

import (
	"errors"

	"github.com/tarnproject/tarn/fieldpath"
)

// Indexed requires that an index, of either kind, has the object under a value. In
// an index by field paths, the value is the text of the first field.
func Indexed(index, value string) Condition {
	c := Condition{index: index, under: value}
	if index == "" {
		c.err = errors.New("the condition names no index")
	}
	return c
}

// Holds is a condition that Go code decides. The name identifies it in Explain and
// in continue tokens.
func Holds(name string, decide func(object any) bool) Condition {
	c := Condition{name: name, decide: decide}
	if decide == nil {
		c.err = errors.New("condition " + name + " has no function: give one, or leave it out")
	}
	return c
}

// By lets Go code decide the condition where no index answers it. It is for fields
// that objects do not have under their path in JSON, or not always.
func (c Condition) By(decide func(object any) bool) Condition {
	c.decide = decide
	return c
}

// byPath says whether the field is read by its path.
func (c *Condition) byPath() bool { return c.path != nil && c.decide == nil }

// testOf makes the test of one object.
func testOf[T any](st State[T], c *Condition) func(T) bool {
	switch {
	case c.decide != nil:
		return func(object T) bool { return c.decide(object) }
	case c.index != "":
		x, err := st.Index(c.index)
		if err != nil {
			return func(T) bool { return false } // checked before
		}
		return x.Finds(c.under)
	}
	var values []fieldpath.Value
	return func(object T) bool {
		values, _ = c.path.Append(values[:0], object) // a path that the type does not have is missing
		return c.holds(values)
	}
}
