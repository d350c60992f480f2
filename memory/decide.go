package memory

import (
	"errors"
	"slices"

	"github.com/tarnproject/tarn/fieldpath"
)

// Indexed wants objects that an index, of whichever kind, has under a value; see
// [Store.ByIndex].
func Indexed(index, value string) Condition {
	c := Condition{index: index, under: value}
	if index == "" {
		c.err = errors.New("the condition names no index")
	}
	return c
}

// Holds is a condition that Go code decides. The name stands for it in Explain, and
// tells it from others in continue tokens.
func Holds(name string, decide func(object any) bool) Condition {
	c := Condition{name: name, decide: decide}
	if decide == nil {
		c.err = errors.New("condition " + name + " has no function: give one, or leave it out")
	}
	return c
}

// By has Go code decide what the condition says, where no index answers it. It is
// for fields that objects do not have by their path in JSON, or not always.
func (c Condition) By(decide func(object any) bool) Condition {
	c.decide = decide
	return c
}

// byPath says whether the field is read by its path.
func (c *Condition) byPath() bool { return c.path != nil && c.decide == nil }

// test makes the question that each object is asked.
func (st *state[T]) test(c *Condition) func(T) bool {
	switch {
	case c.decide != nil:
		return func(object T) bool { return c.decide(object) }
	case c.index != "":
		x, err := st.shelf(c.index)
		if err != nil {
			return func(T) bool { return false } // checked before
		}
		reader, spans := index[T]{Index: x.Index}, x.textSpans(c.under)
		return func(object T) bool {
			values, _ := reader.valuesOf(object) // an object that fails is not in the index
			return slices.ContainsFunc(values, func(value string) bool {
				return slices.ContainsFunc(spans, func(r span) bool { return r.has(value) })
			})
		}
	}
	var values []fieldpath.Value
	return func(object T) bool {
		values, _ = c.path.Append(values[:0], object) // a path that its type does not have is missing
		return c.holds(values)
	}
}
