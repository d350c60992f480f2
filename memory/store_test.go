package memory

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

func words(s string) ([]string, error) {
	if strings.HasPrefix(s, "!") {
		return nil, errors.New("unreadable: " + s)
	}
	return strings.Fields(s), nil
}

func filled(t *testing.T, objects map[tarn.Key]string) *Store[string] {
	t.Helper()
	s := New[string]()
	for key, object := range objects {
		if err := s.Put(key, object); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestApplyRefusesWhatIsNoWrite(t *testing.T) {
	for _, kind := range []tarn.ChangeType{0, tarn.Sync, 99} {
		s := filled(t, map[tarn.Key]string{"a": "one"})
		s.SetVersion("5")
		err := s.Apply([]tarn.Change[string]{
			{Type: tarn.Delete, Key: "a"},
			{Type: kind, Key: "b", Object: "two"},
		}, tarn.At("6"))
		if err == nil || !strings.Contains(err.Error(), `change 2 of 2, for "b"`) {
			t.Errorf("type %d: error %v does not say which change is wrong", kind, err)
		}
		if _, ok := errors.AsType[tarn.ObjectErrors](err); ok {
			t.Errorf("type %d: an ObjectErrors would say that the rest was taken", kind)
		}
		if _, ok := s.Get("a"); !ok || s.Version() != "5" {
			t.Errorf("type %d: something was applied", kind)
		}
	}
}

func TestIndexErrorTellsWhatFailed(t *testing.T) {
	s := New[string]()
	boom := errors.New("boom")
	err := s.AddIndexes(map[string]func(string) ([]string, error){
		"words":  words,
		"panics": func(string) ([]string, error) { panic(boom) },
		"fine":   func(s string) ([]string, error) { return []string{s}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Put("a", "!x")
	if !errors.As(err, new(tarn.ObjectErrors)) {
		t.Fatalf("%v is not an ObjectErrors", err)
	}
	want := `a: index "panics": the index function panicked: boom; the object is stored, but this index does not find it: make the index function accept it; ` +
		`a: index "words": unreadable: !x; the object is stored, but this index does not find it: make the index function accept it`
	if err.Error() != want {
		t.Errorf("text\n%s\nwant\n%s", err, want)
	}
	if bad := err.(tarn.ObjectErrors); !errors.Is(bad[0].Err, boom) {
		t.Errorf("what the function panicked with is lost from %v", bad[0].Err)
	}
	if _, ok := s.Get("a"); !ok {
		t.Error("the object was not kept")
	}
	if keys, err := s.IndexKeys("fine", "!x"); err != nil || !slices.Equal(keys, []tarn.Key{"a"}) {
		t.Errorf("the healthy index has %v, %v", keys, err)
	}
}

// An object that was bad and is corrected in the same batch is not reported.
func TestBatchReportsOnlyWhatHoldsInTheEnd(t *testing.T) {
	for name, then := range map[string]func(*Writer[string]){
		"good again": func(w *Writer[string]) { w.Put("a", "fine") },
		"removed":    func(w *Writer[string]) { w.Remove("a") },
	} {
		s := New[string]()
		if err := s.AddIndexes(map[string]func(string) ([]string, error){"words": words}); err != nil {
			t.Fatal(err)
		}
		err := s.Batch(func(w *Writer[string]) {
			w.Put("a", "!bad")
			then(w)
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddIndexesIsAllOrNothing(t *testing.T) {
	s := New[string]()
	add := func(names ...string) error {
		functions := map[string]func(string) ([]string, error){}
		for _, name := range names {
			functions[name] = words
		}
		return s.AddIndexes(functions)
	}
	if err := add("a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := add("b", "c", "a"); fmt.Sprint(err) != "indexer conflict: map[a:{} b:{}]" {
		t.Errorf("conflict: %v", err)
	}
	if err := s.AddIndexes(map[string]func(string) ([]string, error){"d": words, "e": nil}); err == nil {
		t.Error("an index without a function was taken")
	}
	if names := slices.Sorted(maps.Keys(s.IndexFuncs())); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("indexes %v after two refusals", names)
	}
}

func TestUnknownIndex(t *testing.T) {
	s := filled(t, map[tarn.Key]string{"a": "one"})
	_, byIndex := s.ByIndex("nope", "x")
	_, keys := s.IndexKeys("nope", "x")
	_, values := s.IndexValues("nope")
	_, index := s.Index("nope", "x")
	for i, err := range []error{byIndex, keys, values, index} {
		if fmt.Sprint(err) != "Index with name nope does not exist" {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestIndexOfAnObjectThatFails(t *testing.T) {
	s := filled(t, map[tarn.Key]string{"a": "one"})
	if err := s.AddIndexes(map[string]func(string) ([]string, error){
		"words":  words,
		"panics": func(string) ([]string, error) { panic("boom") },
	}); err == nil {
		t.Error("the object that the second index could not take was not reported")
	}
	if _, err := s.Index("words", "!x"); fmt.Sprint(err) != "unreadable: !x" {
		t.Errorf("error %v, want the function's own", err)
	}
	if _, err := s.Index("panics", "x"); fmt.Sprint(err) != "the index function panicked: boom" {
		t.Errorf("error %v", err)
	}
}

// An index function may return a slice of its object, and callers may change
// results.
func TestNothingIsSharedButObjects(t *testing.T) {
	s := New[*thing]()
	if err := s.AddIndexes(map[string]func(*thing) ([]string, error){"tags": tagsOf}); err != nil {
		t.Fatal(err)
	}
	o := &thing{tags: []string{"z", "y", "z"}}
	if err := s.Put("a", o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.tags, []string{"z", "y", "z"}) {
		t.Errorf("the object's tags became %v", o.tags)
	}
	s.Keys()[0] = "changed"
	s.List()[0] = nil
	delete(s.IndexFuncs(), "tags")
	keys, _ := s.IndexKeys("tags", "z")
	keys[0] = "changed"
	if again, err := s.IndexKeys("tags", "z"); err != nil || !slices.Equal(again, []tarn.Key{"a"}) {
		t.Errorf("after callers wrote into their results: %v, %v", again, err)
	}
	if got, ok := s.Get("a"); !ok || got != o {
		t.Errorf("the object is now %v", got)
	}
}

// A walk may write to the store it walks.
func TestAllWhileWriting(t *testing.T) {
	s := filled(t, map[tarn.Key]string{"a": "1", "b": "2", "c": "3"})
	seen := map[tarn.Key]string{}
	for key, object := range s.All() {
		seen[key] = object
		for _, k := range s.Keys() {
			s.Remove(k)
		}
		if err := s.Put("d", "4"); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 || seen["d"] != "" {
		t.Errorf("saw %v, want the three objects from the beginning", seen)
	}
	for range s.All() {
		break
	}
}

// A walk that panics, or ends its goroutine, leaves the store unchanged.
func TestReplaceAllThatPanics(t *testing.T) {
	for name, give := range map[string]func(){"panic": func() { panic("enough") }, "goexit": runtime.Goexit} {
		s := filled(t, map[tarn.Key]string{"a": "one", "b": "two"})
		if err := s.AddIndex("words", IndexFunc(words)); err != nil {
			t.Fatal(err)
		}
		done := make(chan any)
		go func() {
			defer func() {
				recover()
				close(done)
			}()
			_ = s.ReplaceAll(3, func(yield func(tarn.Key, string) bool) {
				yield("a", "changed")
				yield("c", "new")
				yield("a", "changed again")
				if o, _ := s.Get("a"); o != "one" {
					t.Errorf("%s: %q is seen before all is there", name, o)
				}
				give()
			}, tarn.At("7"))
		}()
		<-done
		if got := fmt.Sprint(maps.Collect(s.All()), s.Version()); got != "map[a:one b:two]" {
			t.Errorf("%s: left behind is %s", name, got)
		}
		if _, ok := s.Get("c"); ok || s.sound() != "" {
			t.Errorf("%s: %s", name, s.sound())
		}
		if err := s.ReplaceAll(1, maps.All(map[tarn.Key]string{"d": "later"}), tarn.At("8")); err != nil || s.Len() != 1 || s.sound() != "" {
			t.Errorf("%s: the next write gives %d objects, %v; %s", name, s.Len(), err, s.sound())
		}
	}
}
