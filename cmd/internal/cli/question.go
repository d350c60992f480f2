package cli

import (
	"slices"
	"strings"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
)

// question is a query from the flags, the same for every resource.
type question struct {
	query query.Query
	// fields are the fields that it selects and sorts by, each once.
	fields []*fieldpath.Path
	// indexes are the indexes to make first, each of one field or several.
	indexes [][]*fieldpath.Path
}

// nothing is a store to try queries on.
var nothing = memory.New[mirror.Object]()

// question rejects wrong flags before any request to a cluster.
func (o *queryOptions) question() (question, error) {
	if err := o.checkQuery(); err != nil {
		return question{}, err
	}
	q := question{query: query.Where().Labels(o.labels)}
	if o.fields != "" {
		if err := q.where("--field-selector", o.fields); err != nil {
			return question{}, err
		}
	}
	for _, selector := range o.where {
		if err := q.where("--where", selector); err != nil {
			return question{}, err
		}
	}
	if err := q.sortBy(o.sort); err != nil {
		return question{}, err
	}
	for _, text := range o.indexes {
		paths, _, err := readPaths("--index", text)
		if err != nil {
			return question{}, err
		}
		q.indexes = append(q.indexes, paths)
	}
	q.query = q.query.Limit(o.limit)
	return q, nil
}

// checkQuery rejects flags that do not go together.
func (o *queryOptions) checkQuery() error {
	if err := (&scope{labels: o.labels}).check(); err != nil {
		return err
	}
	instead := "--count"
	if o.explain {
		instead = "--explain"
	}
	switch {
	case o.limit < 0:
		return usagef("--limit is a number from 1 on, or 0 for all; not %d", o.limit)
	case o.timeout <= 0:
		return usagef("--timeout is a time such as 10m, not %v", o.timeout)
	case o.count && o.explain:
		return usagef("--count and --explain are both asked for: leave one out")
	case (o.count || o.explain) && o.format != "":
		return usagef("%s prints no objects: leave out -o %s", instead, o.format)
	case (o.count || o.explain) && o.after != "":
		return usagef("%s is about all pages: leave out --continue", instead)
	case o.count && o.limit > 0:
		return usagef("--count counts all: leave out --limit")
	}
	return o.output.check()
}

// where adds a field selector.
func (q *question) where(flag, selector string) error {
	plan, err := nothing.Explain(query.Where().Fields(selector))
	if err != nil {
		return usagef("%s: %s; write it as spec.nodeName=node-1,status.phase!=Running", flag, strings.TrimPrefix(err.Error(), "query: "))
	}
	for _, condition := range plan.Filter {
		q.mention(condition.Path())
	}
	q.query = q.query.And(plan.Filter...)
	return nil
}

func (q *question) sortBy(flags []string) error {
	var all []string
	for _, text := range flags {
		paths, orders, err := readPaths("--sort-by", text)
		if err != nil {
			return err
		}
		for i, path := range paths {
			q.mention(path)
			all = append(all, orders[i]+path.String())
		}
	}
	q.query = q.query.Sort(all...)
	return nil
}

// readPaths parses paths with commas between them, as kubectl's users write them. An order is
// "-", or empty.
func readPaths(flag, text string) (paths []*fieldpath.Path, orders []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, down := strings.CutPrefix(strings.TrimSpace(part), "-")
		if down && flag == "--index" {
			return nil, nil, usagef("--index %s: an index has no order; leave out the -", text)
		}
		path, err := fieldpath.Parse(strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}"))
		if err != nil {
			return nil, nil, usagef("%s %s: %v; write it as metadata.creationTimestamp", flag, text, err)
		}
		order := ""
		if down {
			order = "-"
		}
		paths, orders = append(paths, path), append(orders, order)
	}
	return paths, orders, nil
}

func (q *question) mention(path *fieldpath.Path) {
	known := func(p *fieldpath.Path) bool { return p.String() == path.String() }
	if path != nil && !slices.ContainsFunc(q.fields, known) {
		q.fields = append(q.fields, path)
	}
}

// about reports whether the question is about a field or a field in it.
func (q *question) about(field string) bool {
	return slices.ContainsFunc(q.fields, func(p *fieldpath.Path) bool {
		rest, ok := strings.CutPrefix(p.String(), field)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// of returns the query for one resource, starting after the page that a token ended.
//
// A query does not say where it is asked. So the namespace becomes part of it, and the token
// names the resource: a token of another place would otherwise lead to a position in the
// wrong order.
func (q *question) of(r mirror.Resource, namespace, token string) (query.Query, error) {
	asked := q.query
	if namespace != "" {
		asked = asked.Under(tarn.Key(namespace + "/"))
	}
	if token == "" {
		return asked, nil
	}
	end := max(strings.LastIndex(token, "."), 0)
	if of := token[:end]; of != "" && of != r.Name() {
		return asked, usagef("--continue: the token is of a query for %s, not for %s", of, r.Name())
	}
	asked = asked.After(strings.TrimPrefix(token[end:], "."))
	if _, err := nothing.Select(asked); err != nil {
		return asked, wrongQuery(err)
	}
	return asked, nil
}

// token continues after a page; it is empty after the last one.
func (f *answer) token() string {
	if f.Continue == "" {
		return ""
	}
	return f.resource.Name() + "." + f.Continue
}

func (q *question) addIndexes(store *memory.Store[mirror.Object]) error {
	for _, fields := range q.indexes {
		var paths []string
		for _, field := range fields {
			paths = append(paths, field.String())
		}
		name := strings.Join(paths, ",")
		if err := store.AddIndex(name, memory.IndexPath[mirror.Object](paths...)); err != nil {
			return usagef("--index: %v", err)
		}
	}
	return nil
}

// wrongQuery explains the store's error about a query that it cannot answer.
func wrongQuery(err error) error {
	return usagef("%s", strings.TrimPrefix(err.Error(), "query: "))
}
