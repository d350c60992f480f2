package query

import (
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// A Query says which objects to return and in which order. Its methods return a new
// query and do not change the old one; the method that runs it reports a mistake in
// it.
type Query struct {
	conditions []Condition
	under      tarn.Key
	sort       []order
	limit      int
	after      string
	err        error
}

// order is a field to sort by.
type order struct {
	path *fieldpath.Path
	down bool
}

func (o order) String() string {
	if o.down {
		return "-" + o.path.String()
	}
	return o.path.String()
}

// Where starts a query for the objects that fulfil all conditions; without any,
// for all.
func Where(conditions ...Condition) Query { return Query{}.And(conditions...) }

// And adds conditions.
func (q Query) And(conditions ...Condition) Query {
	q.conditions = slices.Concat(q.conditions, conditions)
	for _, c := range conditions {
		q.err = errors.Join(q.err, c.err)
	}
	return q
}

// Labels adds a label selector in Kubernetes' syntax, such as
// "app=web,tier in (front,back),!old".
func (q Query) Labels(selector string) Query {
	return q.selector(selector, Label, false)
}

// Fields adds a field selector. Its names are field paths, and it has all operators
// of a label selector, such as "status.phase!=Running,spec.containers[*].image in
// (a,b)". An empty value also stands for a missing one.
func (q Query) Fields(selector string) Query {
	return q.selector(selector, func(name string) Field { return Field(name) }, true)
}

func (q Query) selector(text string, field func(string) Field, missing bool) Query {
	conditions, err := parseSelector(text, field, missing)
	q.err = errors.Join(q.err, err)
	return q.And(conditions...)
}

// Under limits the query to objects whose key begins with prefix: "namespace/".
func (q Query) Under(prefix tarn.Key) Query {
	q.under = prefix
	return q
}

// Sort orders by the values of fields, each deciding between objects that are equal
// in all fields before it, descending with a - in front, and at last by key.
// Objects without a value come before all others, or after them with a -.
func (q Query) Sort(paths ...string) Query {
	q.sort = nil
	for _, text := range paths {
		name, down := strings.CutPrefix(text, "-")
		path, err := fieldpath.Parse(name)
		q.err = errors.Join(q.err, err)
		q.sort = append(q.sort, order{path, down})
	}
	return q
}

// Limit returns at most n objects at a time; 0 is no limit.
func (q Query) Limit(n int) Query {
	if n < 0 {
		q.err = errors.Join(q.err, fmt.Errorf("a limit of %d: it must not be negative", n))
	}
	q.limit = n
	return q
}

// After continues after a page of the same query, by its Continue token. The limit
// may differ. The next page sees writes since the last one; no unchanged object is
// repeated or left out.
func (q Query) After(token string) Query {
	q.after = token
	return q
}

// check returns what is wrong with the query for objects of type T.
func (q *Query) check(t reflect.Type) error {
	if q.err != nil {
		return fmt.Errorf("query: %w", q.err)
	}
	for _, path := range q.paths() {
		if err := path.Check(t); err != nil {
			return fmt.Errorf("query: %w", err)
		}
	}
	return nil
}

// paths are all paths that the query reads.
func (q *Query) paths() []*fieldpath.Path {
	var paths []*fieldpath.Path
	for i := range q.conditions {
		if c := &q.conditions[i]; c.byPath() {
			paths = append(paths, c.path)
		}
	}
	for _, o := range q.sort {
		paths = append(paths, o.path)
	}
	return paths
}

// fingerprint identifies queries that may use each other's tokens.
func (q *Query) fingerprint() uint64 {
	h := fnv.New64a()
	conditions := make([]string, len(q.conditions))
	for i, c := range q.conditions {
		conditions[i] = c.String()
	}
	slices.Sort(conditions)
	fmt.Fprintf(h, "%q %q %q", conditions, q.under, q.sort)
	return h.Sum64()
}

// String shows the query.
func (q Query) String() string {
	var parts []string
	for _, c := range q.conditions {
		parts = append(parts, c.String())
	}
	if q.under != "" {
		parts = append(parts, fmt.Sprintf("under %q", q.under))
	}
	if len(parts) == 0 {
		parts = append(parts, "all")
	}
	text := strings.Join(parts, " and ")
	if len(q.sort) > 0 {
		text += fmt.Sprintf(" sorted by %v", q.sort)
	}
	if q.limit > 0 {
		text += fmt.Sprintf(" limit %d", q.limit)
	}
	return text
}
