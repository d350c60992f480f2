package query_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
)

type item struct {
	Node  string         `json:"node,omitempty"`
	Size  int            `json:"size,omitempty"`
	Tags  []string       `json:"tags,omitempty"`
	Extra map[string]any `json:"extra,omitempty"`
}

// items is a small store with indexes of each kind.
func items(t *testing.T) *memory.Store[*item] {
	t.Helper()
	s := memory.New[*item]()
	for key, o := range map[tarn.Key]*item{
		"a": {Node: "n1", Size: 5, Tags: []string{"x", "y"}},
		"b": {Node: "n1", Size: 10},
		"c": {Node: "n2", Size: 9, Tags: []string{"y", "yz"}},
		"d": {Size: 100},
		"e": {Node: "m", Tags: []string{"z"}},
	} {
		if err := s.Put(key, o); err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]memory.Index[*item]{
		"node": memory.IndexPath[*item]("node"), "size": memory.IndexPath[*item]("size"), "tags": memory.IndexPath[*item]("tags[*]"),
		"node+size": memory.IndexPath[*item]("node", "size"), "tags+node": memory.IndexPath[*item]("tags[*]", "node"),
		"function": memory.IndexFunc(func(o *item) ([]string, error) { return []string{o.Node}, nil }),
	} {
		if err := s.AddIndex(name, x); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

type object struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	item
}

func labelled(o item, set map[string]string) *object {
	out := &object{item: o}
	out.Metadata.Labels = set
	return out
}

var queryFields = []string{"node", "size", "tags[*]", "metadata.labels.app", "extra.x"}

// clause is a condition, and its meaning in plain Go.
type clause struct {
	query.Condition
	matches func(*object) bool
}

func aClause() *rapid.Generator[clause] {
	value := rapid.SampledFrom([]any{"a", "b", "ab", "", 1, 2, 5, 2.5, true, "1"})
	return rapid.Custom(func(t *rapid.T) clause {
		name := rapid.SampledFrom(queryFields).Draw(t, "field")
		f := query.Field(name)
		draw := func() (any, fieldpath.Value) {
			x := value.Draw(t, "value")
			v, err := fieldpath.ValueOf(x)
			if err != nil {
				t.Fatal(err)
			}
			return x, v
		}
		values := func(o *object) []fieldpath.Value {
			all, _ := fieldpath.MustParse(name).Append(nil, o)
			return all
		}
		some := func(test func(fieldpath.Value) bool) func(*object) bool {
			return func(o *object) bool { return slices.ContainsFunc(values(o), test) }
		}
		not := func(test func(*object) bool) func(*object) bool { return func(o *object) bool { return !test(o) } }
		equal := func(all ...fieldpath.Value) func(*object) bool {
			return some(func(v fieldpath.Value) bool { return slices.Contains(all, v) })
		}
		x, v := draw()
		y, w := draw()
		ordered := func(test func(order int) bool) func(*object) bool {
			return some(func(u fieldpath.Value) bool {
				_, a := u.Number()
				_, b := v.Number()
				return (a && b || u.Kind() == v.Kind()) && test(u.Compare(v))
			})
		}
		switch rapid.IntRange(0, 12).Draw(t, "test") {
		case 0, 1:
			return clause{f.Is(x), equal(v)}
		case 2:
			return clause{f.Not(x), not(equal(v))}
		case 3:
			return clause{f.In(x, y), equal(v, w)}
		case 4:
			return clause{f.NotIn(x, y), not(equal(v, w))}
		case 5:
			return clause{f.Exists(), func(o *object) bool { return len(values(o)) > 0 }}
		case 6:
			return clause{f.Missing(), func(o *object) bool { return len(values(o)) == 0 }}
		case 7:
			return clause{f.AtLeast(x), ordered(func(order int) bool { return order >= 0 })}
		case 8:
			return clause{f.Below(x), ordered(func(order int) bool { return order < 0 })}
		case 9:
			word := rapid.SampledFrom([]string{"", "a", "b", "nothing"}).Draw(t, "word")
			return clause{query.Indexed("words", word), func(o *object) bool {
				words, err := wordsOf(o)
				return err == nil && slices.Contains(words, word)
			}}
		case 10:
			odd := func(o *object) bool { return o.Size%2 == 1 }
			return clause{query.Holds("odd", func(o any) bool { return odd(o.(*object)) }), odd}
		case 11:
			// No object has this path, but an index may.
			onA := func(o *object) bool { return o.Node == "a" }
			path := rapid.SampledFrom([]query.Field{"no.such.path", "node"}).Draw(t, "path")
			return clause{path.Is("a").By(func(o any) bool { return onA(o.(*object)) }), onA}
		}
		prefix := rapid.SampledFrom([]string{"", "a", "ab"}).Draw(t, "prefix")
		return clause{f.HasPrefix(prefix), some(func(v fieldpath.Value) bool {
			return v.Kind() == fieldpath.String && strings.HasPrefix(v.String(), prefix)
		})}
	})
}

func anObject() *rapid.Generator[*object] {
	word := rapid.SampledFrom([]string{"", "a", "b", "ab", "abc", "1"})
	return rapid.Custom(func(t *rapid.T) *object {
		o := labelled(item{Node: word.Draw(t, "node"), Size: rapid.IntRange(0, 5).Draw(t, "size"), Tags: rapid.SliceOfN(word, 0, 3).Draw(t, "tags")}, nil)
		if rapid.Bool().Draw(t, "labelled") {
			o.Metadata.Labels = map[string]string{"app": word.Draw(t, "app")}
		}
		if x := rapid.SampledFrom([]any{nil, "a", 1, 2.5, true, int64(2), []any{"a"}}).Draw(t, "x"); x != nil {
			o.Extra = map[string]any{"x": x}
		}
		return o
	})
}

// wordsOf is an index function that does not accept everything.
func wordsOf(o *object) ([]string, error) {
	if o.Size == 5 {
		return nil, errors.New("too large")
	}
	return append([]string{o.Node}, o.Tags...), nil
}

// TestQueries compares queries, over various indexes, paged and whole, with a walk
// through all objects.
func TestQueries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := memory.New[*object]()
		objects := map[tarn.Key]*object{}
		if err := s.AddIndex("words", memory.IndexFunc(wordsOf)); err != nil {
			t.Fatal(err)
		}
		for _, paths := range [][]string{{"node"}, {"size"}, {"tags[*]"}, {"metadata.labels.app"}, {"extra.x"}, {"node", "size"}, {"tags[*]", "node"}, {"size", "extra.x"}} {
			if rapid.Bool().Draw(t, "index "+strings.Join(paths, ",")) {
				if err := s.AddIndex(strings.Join(paths, ","), memory.IndexPath[*object](paths...)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range rapid.IntRange(0, 40).Draw(t, "objects") {
			key := tarn.Key(fmt.Sprintf("%s/%02d", rapid.SampledFrom([]string{"n", "m"}).Draw(t, "namespace"), i))
			objects[key] = anObject().Draw(t, "object")
			_ = s.Put(key, objects[key])
		}
		clauses := rapid.SliceOfN(aClause(), 0, 3).Draw(t, "conditions")
		q, under := query.Where(), ""
		for _, c := range clauses {
			q = q.And(c.Condition)
		}
		if rapid.Bool().Draw(t, "under") {
			under = "n/"
			q = q.Under(tarn.Key(under))
		}
		sort := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"node", "-node", "size", "-size", "metadata.labels.app", "-tags[0]"}), 0, 2, rapid.ID).Draw(t, "sort")
		q = q.Sort(sort...)
		var want []tarn.Key
		for key, o := range objects {
			ok := strings.HasPrefix(string(key), under)
			for _, c := range clauses {
				ok = ok && c.matches(o)
			}
			if ok {
				want = append(want, key)
			}
		}
		slices.SortFunc(want, func(a, b tarn.Key) int {
			for _, text := range sort {
				name, down := strings.CutPrefix(text, "-")
				v, _ := fieldpath.MustParse(name).First(objects[a])
				w, _ := fieldpath.MustParse(name).First(objects[b])
				if c := v.Compare(w); c != 0 {
					if down {
						return -c
					}
					return c
				}
			}
			return strings.Compare(string(a), string(b))
		})
		plan, err := s.Explain(q)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Count(q); err != nil || n != len(want) || n > plan.Examined {
			t.Fatalf("%v: counts %d, %v; want %d of %d examined", q, n, err, len(want), plan.Examined)
		}
		whole, err := s.Select(q)
		if err != nil || whole.Continue != "" || !slices.Equal(whole.Keys, want) {
			t.Fatalf("%v by %v: %v, %v; want %v", q, plan, whole.Keys, err, want)
		}
		for i, key := range whole.Keys {
			if whole.Objects[i] != objects[key] {
				t.Fatalf("%s comes with another object", key)
			}
		}
		var paged []tarn.Key
		for page, token := 0, ""; page == 0 || token != ""; page++ {
			p, err := s.Select(q.Limit(rapid.IntRange(1, 7).Draw(t, "limit")).After(token))
			if err != nil || page > 50 {
				t.Fatal(page, err)
			}
			paged = append(paged, p.Keys...)
			token = p.Continue
		}
		if !slices.Equal(paged, want) {
			t.Fatalf("%v by %v in pages: %v, want %v", q, plan, paged, want)
		}
	})
}

// Objects that are added and deleted between pages shift no others.
func TestPagesStayStable(t *testing.T) {
	s := memory.New[*object]()
	for i := range 20 {
		_ = s.Put(tarn.Key(fmt.Sprintf("%02d", i)), labelled(item{Size: i % 4}, nil))
	}
	q := query.Where().Sort("-size").Limit(5)
	first, err := s.Select(q)
	if err != nil || fmt.Sprint(first.Keys) != "[03 07 11 15 19]" {
		t.Fatal(first.Keys, err)
	}
	s.Remove("19") // where the page ended
	s.Remove("02")
	_ = s.Put("00a", labelled(item{Size: 3}, nil)) // before that
	_ = s.Put("20", labelled(item{Size: 2}, nil))
	second, err := s.Select(q.Limit(6).After(first.Continue))
	if err != nil || fmt.Sprint(second.Keys) != "[06 10 14 18 20 01]" {
		t.Errorf("the second page is %v, %v", second.Keys, err)
	}
	for page := range second.All() {
		if page != "06" {
			t.Errorf("the walk of the page begins with %s", page)
		}
		break
	}
}

func TestBadQueries(t *testing.T) {
	s := items(t)
	anything := memory.New[any]()
	_ = anything.Put("a", &item{Node: "n", Extra: map[string]any{"x": []any{}}})
	sorted := query.Where().Sort("size")
	page, err := s.Select(sorted.Limit(2))
	if err != nil {
		t.Fatal(err)
	}
	for want, run := range map[string]func() error{
		`query: field path "nod": query_test.item has no "nod"; the nearest is "node"`: func() error { _, err := s.Select(query.Where(query.Field("nod").Is("x"))); return err },
		`the nearest is "size"`:                                     func() error { _, err := s.Select(query.Where().Sort("sise")); return err },
		`query: field path "nod"`:                                   func() error { _, err := anything.Select(query.Where(query.Field("nod").Is("x"))); return err },
		`a name is missing`:                                         func() error { _, err := s.Count(query.Where(query.Field("a..b").Exists())); return err },
		`selector "a=b c": expected a comma before "c"`:             func() error { _, err := s.Count(query.Where().Fields("a=b c")); return err },
		`selector "a in b"`:                                         func() error { _, err := s.Explain(query.Where().Fields("a in b")); return err },
		`query: Index with name nope does not exist`:                func() error { _, err := s.Select(query.Where(query.Indexed("nope", "x"))); return err },
		`the condition names no index`:                              func() error { _, err := s.Count(query.Where(query.Indexed("", "x"))); return err },
		`condition odd has no function`:                             func() error { _, err := s.Count(query.Where(query.Holds("odd", nil))); return err },
		`must not be negative`:                                      func() error { _, err := s.Select(query.Where().Limit(-1)); return err },
		`cannot be compared`:                                        func() error { _, err := s.Select(query.Where(query.Field("node").Is([]int{1}))); return err },
		`extra.x of "a" is an object or a list, which has no order`: func() error { _, err := anything.Select(query.Where().Sort("extra.x")); return err },
		`the continue token belongs to another query: `:             func() error { _, err := s.Select(query.Where().Sort("-size").After(page.Continue)); return err },
		`token belongs to another query`: func() error {
			_, err := s.Select(query.Where(query.Field("node").Is("x")).Sort("size").After(page.Continue))
			return err
		},
		`the continue token is damaged`: func() error { _, err := s.Select(sorted.After(page.Continue[1:])); return err },
		`token is damaged`:              func() error { _, err := s.Select(sorted.After("x")); return err },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestExplain(t *testing.T) {
	s := items(t)
	for name, want := range map[string]struct {
		q    query.Query
		want string
	}{
		"index":    {query.Where(query.Field("node").Is("n2")), `index node: [node in ("n2")]; 1 of 5 examined; in the order of keys`},
		"compound": {query.Where(query.Field("node").Is("n1"), query.Field("size").AtLeast(6), query.Field("size").Below(50)), `index node+size: [node in ("n1") size >= 6 size < 50]; 1 of 5 examined; in the order of keys`},
		"filter":   {query.Where(query.Field("node").Is("n2"), query.Field("tags[*]").Not("x")).Sort("-size").Limit(3), `index node: [node in ("n2")]; 1 of 5 examined; filter [tags[*] notin ("x")]; sort by [-size]; limit 3`},
		"none":     {query.Where(query.Field("node").Missing()), `all objects; 5 of 5 examined; filter [node missing]; in the order of keys`},
		"function": {query.Where(query.Indexed("function", "n2"), query.Holds("large", func(any) bool { return true })), `index : [in index  under "n2"]; 1 of 5 examined; filter [large]; in the order of keys`},
		"two":      {query.Where(query.Indexed("function", "n1"), query.Indexed("size", "9")), `index size: [in index size under "9"]; 1 of 5 examined; filter [in index  under "n1"]; in the order of keys`},
		"by code":  {query.Where(query.Field("node").Is("n2").By(func(any) bool { return false })), `index node: [node in ("n2")]; 1 of 5 examined; in the order of keys`},
		"keys":     {query.Where().Under("b"), `keys under "b"; 1 of 5 examined; in the order of keys`},
		"selector": {query.Where().Fields("size in (9,10),node!=n1"), `index size: [size in (9, 10, "10", "9")]; 2 of 5 examined; filter [node notin ("n1")]; in the order of keys`},
	} {
		plan, err := s.Explain(want.q)
		if err != nil || !strings.Contains(strings.ReplaceAll(plan.String(), "function", ""), want.want) {
			t.Errorf("%s: %v, %v; want %s", name, plan, err, want.want)
		}
	}
}

// One value may fulfil one condition and another value the next: an index must not
// treat both as one range.
func TestSeveralValuesAnswerSeveralBounds(t *testing.T) {
	s := items(t)
	q := query.Where(query.Field("tags[*]").AtLeast("y"), query.Field("tags[*]").Below("y"))
	page, err := s.Select(q)
	if plan, _ := s.Explain(q); err != nil || fmt.Sprint(page.Keys) != "[a]" {
		t.Errorf("%v, %v by %v; want the one with x and y", page.Keys, err, plan)
	}
}
