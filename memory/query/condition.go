package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tarnproject/tarn/fieldpath"
)

// A Condition is a test that the objects of a query must pass. It is made from a
// [Field], or comes from a selector.
//
// A field with several values, by a [*] in its path, fulfils Is, In, AtLeast and
// similar conditions if one of them does, and Not and NotIn if none of the values
// is excluded.
type Condition struct {
	path *fieldpath.Path
	test test
	// values are those of isOneOf and isNoneOf, in order; a bound is the first.
	values []fieldpath.Value
	err    error

	// index and under are those of Indexed.
	index, under string
	// name is that of Holds; decide says whether the condition holds, if no index
	// answers it.
	name   string
	decide func(object any) bool
}

// Path is the field of the condition, nil if it has none.
func (c Condition) Path() *fieldpath.Path { return c.path }

type test uint8

const (
	isOneOf test = iota
	isNoneOf
	isThere
	isMissing
	isAtLeast
	isBelow
	hasPrefix
	// The following come from selectors. They also match strings that spell
	// numbers, because labels are strings.
	isAbove
	isAtMost
	isBelowNumber
	isAtLeastNumber
)

var testNames = [...]string{"in", "notin", "exists", "missing", ">=", "<", "begins with", ">", "<=", "<", ">="}

// Field is the path of a field, for conditions.
type Field string

// Label is the field of a label.
func Label(name string) Field {
	return Field("metadata.labels['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "']")
}

// Is requires the field to have this value: a string, number, bool or time.
func (f Field) Is(value any) Condition { return f.condition(isOneOf, value) }

// Not requires the field to have another value, or none.
func (f Field) Not(value any) Condition { return f.condition(isNoneOf, value) }

// In requires the field to have one of these values.
func (f Field) In(values ...any) Condition { return f.condition(isOneOf, values...) }

// NotIn requires the field to have none of these values.
func (f Field) NotIn(values ...any) Condition { return f.condition(isNoneOf, values...) }

// Exists requires the field to have a value.
func (f Field) Exists() Condition { return f.condition(isThere) }

// Missing requires the field to have no value.
func (f Field) Missing() Condition { return f.condition(isMissing) }

// AtLeast requires a value of the same kind that is not less than this one.
func (f Field) AtLeast(value any) Condition { return f.condition(isAtLeast, value) }

// Below requires a value of the same kind that is less than this one.
func (f Field) Below(value any) Condition { return f.condition(isBelow, value) }

// HasPrefix requires a string that begins with prefix.
func (f Field) HasPrefix(prefix string) Condition { return f.condition(hasPrefix, prefix) }

func (f Field) condition(t test, values ...any) Condition {
	c := Condition{test: t}
	c.path, c.err = fieldpath.Parse(string(f))
	for _, x := range values {
		v, err := fieldpath.ValueOf(x)
		if err != nil && c.err == nil {
			c.err = fmt.Errorf("condition on %s: %w", f, err)
		}
		c.values = append(c.values, v)
	}
	c.order()
	return c
}

// order sorts the values where their order does not matter.
func (c *Condition) order() {
	if c.test == isOneOf || c.test == isNoneOf {
		slices.SortFunc(c.values, fieldpath.Value.Compare)
		c.values = slices.Compact(c.values)
	}
}

// String is the condition in the form of Explain. It also distinguishes one
// condition from another, kinds of values included.
func (c Condition) String() string {
	switch {
	case c.err != nil:
		return c.err.Error()
	case c.index != "":
		return fmt.Sprintf("in index %s under %q", c.index, c.under)
	case c.path == nil:
		return c.name
	}
	texts := make([]string, len(c.values))
	for i, v := range c.values {
		texts[i] = v.String()
		if v.Kind() == fieldpath.String {
			texts[i] = strconv.Quote(texts[i])
		} else if v.IsMissing() {
			texts[i] = "none"
		}
	}
	switch c.test {
	case isOneOf, isNoneOf:
		return fmt.Sprintf("%s %s (%s)", c.path, testNames[c.test], strings.Join(texts, ", "))
	case isThere, isMissing:
		return fmt.Sprintf("%s %s", c.path, testNames[c.test])
	}
	return fmt.Sprintf("%s %s %s", c.path, testNames[c.test], strings.Join(texts, ", "))
}

// holds says whether a field with these values fulfils the condition.
func (c *Condition) holds(values []fieldpath.Value) bool {
	switch c.test {
	case isThere:
		return len(values) > 0
	case isMissing:
		return len(values) == 0
	case isNoneOf:
		return !c.hasOne(values)
	case isOneOf:
		return c.hasOne(values)
	}
	return slices.ContainsFunc(values, c.bounds)
}

// hasOne says whether one of the values is one of the condition's. Having no value
// counts as Missing, which the condition may have.
func (c *Condition) hasOne(values []fieldpath.Value) bool {
	if len(values) == 0 {
		return len(c.values) > 0 && c.values[0].IsMissing()
	}
	return slices.ContainsFunc(values, func(v fieldpath.Value) bool { return slices.Contains(c.values, v) })
}

func (c *Condition) bounds(v fieldpath.Value) bool {
	bound := c.values[0]
	if c.test == hasPrefix {
		return v.Kind() == fieldpath.String && bound.Kind() == fieldpath.String && strings.HasPrefix(v.String(), bound.String())
	}
	if c.test >= isAbove && v.Kind() == fieldpath.String {
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil {
			return false
		}
		v = fieldpath.IntValue(n)
	}
	if !sameOrder(v, bound) {
		return false
	}
	order := v.Compare(bound)
	switch c.test {
	case isAtLeast, isAtLeastNumber:
		return order >= 0
	case isBelow, isBelowNumber:
		return order < 0
	case isAbove:
		return order > 0
	}
	return order <= 0
}

// sameOrder says whether values are of kinds that compare by their content.
func sameOrder(v, w fieldpath.Value) bool {
	_, number := v.Number()
	_, other := w.Number()
	return v.Kind() == w.Kind() || number && other
}
