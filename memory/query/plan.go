package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/fieldpath"
)

// Plan is how a query is answered: which objects are read, and how each is tested.
type Plan struct {
	// Index is the index to use, empty if none fits.
	Index string
	// Answered are the conditions that the index answers, Filter those that each
	// object is tested for.
	Answered, Filter []Condition
	// Under is the prefix of the keys to read, if no index is used.
	Under string
	// Examined is how many objects are read, of how many.
	Examined, Of int
	// Sorted says that matches are collected and sorted.
	Sorted bool
	query  Query
	spans  []Span
}

func (p Plan) String() string {
	var b strings.Builder
	switch {
	case p.Index != "":
		fmt.Fprintf(&b, "index %s: %v", p.Index, p.Answered)
	case p.Under != "":
		fmt.Fprintf(&b, "keys under %q", p.Under)
	default:
		b.WriteString("all objects")
	}
	fmt.Fprintf(&b, "; %d of %d examined", p.Examined, p.Of)
	if len(p.Filter) > 0 {
		fmt.Fprintf(&b, "; filter %v", p.Filter)
	}
	if p.Sorted {
		fmt.Fprintf(&b, "; sort by %v", p.query.sort)
	} else {
		b.WriteString("; in the order of keys")
	}
	if p.query.limit > 0 {
		fmt.Fprintf(&b, "; limit %d", p.query.limit)
	}
	return b.String()
}

// planOf chooses the plan that reads the fewest objects. The index is nil if none
// fits.
func planOf[T any](st State[T], q Query) (Plan, Index[T]) {
	n := st.Len()
	best := Plan{query: q, Filter: q.conditions, Under: string(q.under), Of: n, Examined: n, Sorted: len(q.sort) > 0}
	if q.under != "" {
		best.Examined = st.CountKeys(PrefixSpan(best.Under))
	}
	var with Index[T]
	for x := range st.Indexes() {
		spans, used := fit(x, q.conditions)
		if spans == nil {
			continue
		}
		n := x.Count(spans, best.Examined+1)
		if n > best.Examined || n == best.Examined && with != nil && !simpler(x, len(used), with, len(best.Answered)) {
			continue
		}
		best.Index, best.spans, best.Examined = x.Name(), spans, n
		best.Answered, best.Filter = divide(q.conditions, used)
		with = x
	}
	return best, with
}

// simpler says which of two indexes to prefer that lead to equally many objects:
// the one that answers more, then the one of fewer fields, then by name.
func simpler[T any](x Index[T], answers int, other Index[T], others int) bool {
	return cmp.Or(cmp.Compare(others, answers), cmp.Compare(len(x.Paths()), len(other.Paths())), cmp.Compare(x.Name(), other.Name())) < 0
}

// divide separates the conditions that are used from the others.
func divide(conditions []Condition, used []int) (answered, rest []Condition) {
	for i, c := range conditions {
		if slices.Contains(used, i) {
			answered = append(answered, c)
		} else {
			rest = append(rest, c)
		}
	}
	return answered, rest
}

// maxRows bounds the number of lookups of a query, where each of several fields may
// have several values.
const maxRows = 1000

// fit returns the spans of the index that hold all objects that fulfil some of the
// conditions, and only those; and which conditions these are. Without a span the
// index is of no use.
//
// It goes through the fields of the index as long as conditions fix their values,
// and may end with one that bounds them.
func fit[T any](x Index[T], conditions []Condition) (spans []Span, used []int) {
	if i := slices.IndexFunc(conditions, func(c Condition) bool { return c.index == x.Name() }); i >= 0 {
		return x.Spans(conditions[i].under), []int{i}
	}
	rows := []string{""}
	for _, path := range x.Paths() {
		i := slices.IndexFunc(conditions, func(c Condition) bool {
			return c.test == isOneOf && c.about(path) && !slices.Contains(c.values, fieldpath.Value{})
		})
		if i < 0 || len(rows)*len(conditions[i].values) > maxRows {
			return bounded(rows, path, conditions, used)
		}
		used = append(used, i)
		var longer []string
		for _, row := range rows {
			for _, v := range conditions[i].values {
				longer = append(longer, string(v.AppendOrdered([]byte(row))))
			}
		}
		rows = longer
	}
	if len(used) == 0 {
		return nil, nil
	}
	return prefixSpans(rows), used
}

// prefixSpans are the spans of all codes that begin with one of the rows.
func prefixSpans(rows []string) []Span {
	spans := make([]Span, len(rows))
	for i, row := range rows {
		spans[i] = PrefixSpan(row)
	}
	return spans
}

// bounded ends the fit with a condition that bounds the next field.
func bounded(rows []string, path *fieldpath.Path, conditions []Condition, used []int) ([]Span, []int) {
	var within *Span
	for i, c := range conditions {
		bounds, ok := c.within(path)
		if !ok {
			continue
		}
		if within == nil {
			within = &bounds
		} else if path.Multi() {
			break // another value may fulfil the other condition
		} else {
			within.From, within.To = max(within.From, bounds.From), min(within.To, bounds.To)
		}
		used = append(used, i)
	}
	switch {
	case len(used) == 0:
		return nil, nil
	case within == nil:
		return prefixSpans(rows), used
	}
	spans := make([]Span, len(rows))
	for i, row := range rows {
		spans[i] = Span{row + within.From, row + within.To}
	}
	return spans, used
}

// about says whether the condition is about the field with this path.
func (c *Condition) about(path *fieldpath.Path) bool {
	return c.path != nil && c.path.String() == path.String()
}

// within is the span of codes of the values that fulfil the condition, if it is
// about this path and there is one.
func (c *Condition) within(path *fieldpath.Path) (Span, bool) {
	if !c.about(path) {
		return Span{}, false
	}
	switch c.test {
	case hasPrefix:
		return PrefixSpan(string(fieldpath.AppendOrderedPrefix(nil, c.values[0].String()))), c.values[0].Kind() == fieldpath.String
	case isAtLeast, isBelow:
		code := string(c.values[0].AppendOrdered(nil))
		kind := PrefixSpan(code[:1]) // all values that compare with it
		if c.test == isAtLeast {
			return Span{code, kind.To}, true
		}
		return Span{kind.From, code}, true
	}
	return Span{}, false
}
