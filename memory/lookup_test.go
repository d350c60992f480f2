package memory

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

type item struct {
	Node  string         `json:"node,omitempty"`
	Size  int            `json:"size,omitempty"`
	Tags  []string       `json:"tags,omitempty"`
	Extra map[string]any `json:"extra,omitempty"`
}

func items(t *testing.T) *Store[*item] {
	t.Helper()
	s := New[*item]()
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
	for name, x := range map[string]Index[*item]{
		"node": IndexPath[*item]("node"), "size": IndexPath[*item]("size"), "tags": IndexPath[*item]("tags[*]"),
		"node+size": IndexPath[*item]("node", "size"), "tags+node": IndexPath[*item]("tags[*]", "node"),
		"function": IndexFunc(func(o *item) ([]string, error) { return []string{o.Node}, nil }),
	} {
		if err := s.AddIndex(name, x); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func keysOf[T any](found iter.Seq2[tarn.Key, T], err error) string {
	if err != nil {
		return err.Error()
	}
	var keys []string
	for key := range found {
		keys = append(keys, string(key))
	}
	return strings.Join(keys, " ")
}

func TestLookup(t *testing.T) {
	s := items(t)
	row := func(values ...any) []any { return values }
	for i, test := range []struct{ have, want string }{
		{keysOf(s.Lookup("node", "n1")), "a b"},
		{keysOf(s.Lookup("node", "n")), ""},
		{keysOf(s.LookupPrefix("node", "n")), "a b c"},
		{keysOf(s.LookupPrefix("node", "")), "e a b c"},
		{keysOf(s.LookupRange("node", row("m"), row("n2"))), "e a b"},
		{keysOf(s.Lookup("size", 9)), "c"},
		{keysOf(s.Lookup("size", "9")), ""},
		{keysOf(s.LookupRange("size", row(9), nil)), "c b d"},
		{keysOf(s.LookupRange("size", nil, row(10))), "a c"},
		{keysOf(s.LookupRange("size", row(9.5), row(10.5))), "b"},
		{keysOf(s.LookupRange("size", row(10), row(9))), ""},
		{keysOf(s.Lookup("tags", "y")), "a c"},
		{keysOf(s.LookupPrefix("tags", "y")), "a c c"},
		{keysOf(s.Lookup("node+size", "n1")), "a b"},
		{keysOf(s.Lookup("node+size", "n1", 10)), "b"},
		{keysOf(s.LookupRange("node+size", row("n1", 6), row("n2", 10))), "b c"},
		{keysOf(s.LookupPrefix("tags+node", "n", "y")), "a c"},
		{keysOf(s.Lookup("function", "")), "d"},
		{keysOf(s.LookupPrefix("function", "n")), "a b c"},
		{keysOf(s.LookupRange("function", row("m"), row("n2"))), "e a b"},
		{keysOf(s.Lookup("function", 5)), `index "function": a value is int: an index by function has strings`},
		{keysOf(s.Lookup("node")), `index "node": no value to look up: pass one, or walk All`},
		{keysOf(s.Lookup("node", "a", "b")), `index "node": 2 values for 1 fields: leave out the last ones`},
		{keysOf(s.Lookup("node", []int{1})), `index "node": []int is neither a string, a number, a bool nor a time: it cannot be compared with a field`},
		{keysOf(s.LookupPrefix("function", "n", "x")), `index "function": an index by function has only one value: nothing can come before the prefix`},
		{keysOf(s.Lookup("nope", "x")), "Index with name nope does not exist"},
	} {
		if test.have != test.want {
			t.Errorf("%d: %q, want %q", i, test.have, test.want)
		}
	}
	snap := s.Snapshot()
	s.Remove("b")
	_ = s.DropIndex("tags")
	for want, have := range map[string]string{
		"a b":                                 keysOf(snap.Lookup("node", "n1")),
		"c b d":                               keysOf(snap.LookupRange("size", row(9), nil)),
		"a c c":                               keysOf(snap.LookupPrefix("tags", "y")),
		"a":                                   keysOf(s.Lookup("node", "n1")),
		"Index with name tags does not exist": keysOf(s.LookupPrefix("tags", "y")),
		"Index with name nope does not exist": keysOf(snap.Lookup("nope", "y")),
	} {
		if have != want {
			t.Errorf("of a snapshot, or after it: %q, want %q", have, want)
		}
	}
	_ = s.Put("b", &item{Node: "n1", Size: 10})
	if values, err := s.IndexValues("size"); err != nil || fmt.Sprint(values) != "[5 9 10 100]" {
		t.Errorf("sizes %v, %v: not in the order of numbers", values, err)
	}
	if keys, err := s.IndexKeys("size", "9"); err != nil || fmt.Sprint(keys) != "[c]" {
		t.Errorf("by text: %v, %v", keys, err)
	}
	if keys, err := s.IndexKeys("node+size", "n1"); err != nil || fmt.Sprint(keys) != "[a b]" {
		t.Errorf("by the text of the first field: %v, %v", keys, err)
	}
	if found, err := s.Index("node", &item{Node: "n1"}); err != nil || len(found) != 2 {
		t.Errorf("Index: %v, %v", found, err)
	}
	if values, err := s.IndexFuncs()["node+size"](&item{Node: "n", Size: 3}); err != nil || fmt.Sprint(values) != "[n,3]" {
		t.Errorf("the function of a path index gives %v, %v", values, err)
	}
}

func TestIndexRefusesWhatCannotBe(t *testing.T) {
	s := items(t)
	for want, x := range map[string]Index[*item]{
		`index "new" cannot be made: field path "nod": memory.item has no "nod"; the nearest is "node"; no index was added`: IndexPath[*item]("nod"),
		"more than one path with a [*]":                 IndexPath[*item]("tags[*]", "extra[*]"),
		"has no field path":                             IndexPath[*item](),
		"has no function":                               IndexFunc[*item](nil),
		"is empty: make it with IndexFunc or IndexPath": {},
	} {
		if err := s.AddIndex("new", x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := s.AddIndex("node", IndexPath[*item]("size")); err == nil || !strings.Contains(err.Error(), "indexer conflict") {
		t.Errorf("a name was taken twice: %v", err)
	}
	if err := s.DropIndex("nope"); err == nil {
		t.Error("an index that is not there was dropped")
	}
	if err := s.AddIndex("extra", IndexPath[*item]("extra.x")); err != nil {
		t.Error(err)
	}
	err := s.Put("f", &item{Extra: map[string]any{"x": []any{1}}})
	if bad, ok := errors.AsType[*IndexError](err.(tarn.ObjectErrors)[0].Err); !ok || bad.Index != "extra" || !strings.Contains(bad.Error(), "extra.x is an object or a list") {
		t.Errorf("a list as a value: %v", err)
	}
	if wrong := s.sound(); wrong != "" {
		t.Error(wrong)
	}
}

// Indexes are added and dropped beside writers; lookups are right at every time.
func TestIndexesComeAndGoWhileWriting(t *testing.T) {
	s := New[int]()
	digits := func(o int) ([]string, error) { return strings.Split(fmt.Sprint(o), ""), nil }
	write := func(n int) error {
		var changes []tarn.Change[int]
		for i := range 3 {
			key := tarn.Key(fmt.Sprintf("%04d", (n*7+i*331)%2000))
			kind := tarn.Update
			if n%5 == 0 {
				kind = tarn.Delete
			}
			changes = append(changes, tarn.Change[int]{Type: kind, Key: key, Object: n})
		}
		return s.Apply(changes, tarn.At(""))
	}
	for n := range 3000 {
		if err := write(n); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
				if err := write(n); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for round := range testsize.Of(15, 5) {
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			if err := s.AddIndex(name, IndexFunc(digits)); err != nil {
				t.Fatal(err)
			}
			snap := s.Snapshot()
			x, err := snap.state.index(name)
			if err != nil {
				t.Fatal(err)
			}
			found, total := 0, 0
			for _, o := range snap.All() {
				if strings.Contains(fmt.Sprint(o), "7") {
					total++
				}
			}
			sevens, err := snap.Lookup(name, "7")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range sevens {
				if !strings.Contains(fmt.Sprint(o), "7") {
					t.Errorf("%s has %d under 7", name, o)
				}
				found++
			}
			if found != total {
				t.Errorf("round %d: index %s (%d entries) has %d under 7, there are %d", round, name, x.entries, found, total)
			}
			snap.Close()
		}
		for _, name := range names[:1+round%4] {
			if err := s.DropIndex(name); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names[1+round%4:] {
			if err := s.DropIndex(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.AddIndex("last", IndexFunc(digits)); err != nil {
		t.Fatal(err)
	}
	close(done)
	writing.Wait()
	if wrong := s.sound(); wrong != "" {
		t.Error(wrong)
	}
}

// Large and small writes give the same indexes.
func TestLargeWrites(t *testing.T) {
	number := func(o int) ([]string, error) {
		if o%11 == 0 {
			return nil, errors.New("no elevens")
		}
		return []string{fmt.Sprint(o % 10), fmt.Sprint(o % 3)}, nil
	}
	s := New[int]()
	if err := s.AddIndex("number", IndexFunc(number)); err != nil {
		t.Fatal(err)
	}
	for round, size := range []int{1000, 3, 40, 500, 1200, 0, 200, 63, 64, 65} {
		var items []tarn.Item[int]
		var changes []tarn.Change[int]
		for i := range size {
			key, o := tarn.Key(fmt.Sprintf("%05d", (i*37+round*13)%1500)), i+round
			items = append(items, tarn.Item[int]{Meta: tarn.Meta{Key: key}, Object: o})
			kind := tarn.Update
			if (i+round)%3 == 0 {
				kind = tarn.Delete
			}
			changes = append(changes, tarn.Change[int]{Type: kind, Key: key, Object: o})
		}
		before := s.Snapshot()
		was := keysOf(before.All(), nil)
		if round%2 == 0 {
			_ = s.Replace(items, tarn.At(""))
		} else {
			_ = s.Apply(changes, tarn.At(""))
		}
		if wrong := s.sound(); wrong != "" {
			t.Fatalf("round %d: %s", round, wrong)
		}
		if keysOf(before.All(), nil) != was {
			t.Fatalf("round %d changed a snapshot", round)
		}
		before.Close()
	}
}

// An index function that changes its result loses nothing: an object keeps its
// entry until it is written again, and then leaves it.
func TestIndexFunctionThatChangesItsMind(t *testing.T) {
	mood := "sunny"
	s := New[string]()
	if err := s.AddIndex("mood", IndexFunc(func(o string) ([]string, error) { return []string{mood, mood + " " + o}, nil })); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := s.Put(tarn.Key(fmt.Sprintf("%03d", i)), fmt.Sprint(i%2)); err != nil {
			t.Fatal(err)
		}
	}
	count := func(value string) int {
		found, err := s.ByIndex("mood", value)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	mood = "rainy"
	if sunny, rainy := count("sunny"), count("rainy"); sunny != 200 || rainy != 0 {
		t.Errorf("before anything is written: %d sunny, %d rainy", sunny, rainy)
	}
	s.Remove("000")
	_ = s.Put("001", "1") // the same object
	_ = s.Put("new", "0")
	if sunny, rainy, new := count("sunny"), count("rainy"), count("rainy 0"); sunny != 198 || rainy != 2 || new != 1 {
		t.Errorf("after three writes: %d sunny, %d rainy, %d of them new", sunny, rainy, new)
	}
	mood = "snowy"
	if err := s.Replace(nil, tarn.At("9")); err != nil || count("sunny")+count("rainy")+count("snowy") != 0 {
		t.Errorf("in an empty store the index has %d, %d, %d; %v", count("sunny"), count("rainy"), count("snowy"), err)
	}
	if values, err := s.IndexValues("mood"); err != nil || len(values) != 0 {
		t.Errorf("values %q are left, %v", values, err)
	}
	if wrong := s.sound(); wrong != "" {
		t.Error(wrong)
	}
}
