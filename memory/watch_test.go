package memory

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// A channel is closed by each write that changes what was read, and by no write
// that is elsewhere.
func TestWatch(t *testing.T) {
	for _, test := range []struct {
		name  string
		write func(s *Store[string])
		want  string // which channels close
	}{
		{"update", func(s *Store[string]) { _ = s.Put("b/1", "red tall") }, "get prefix range all lookup lookup-prefix lookup-range"},
		{"same values", func(s *Store[string]) { _ = s.Put("b/1", "red big") }, "get prefix range all lookup lookup-prefix lookup-range"},
		{"add beside", func(s *Store[string]) { _ = s.Put("z", "blue") }, "all len"},
		{"add of the value", func(s *Store[string]) { _ = s.Put("z", "red") }, "all len lookup lookup-prefix lookup-range"},
		{"add in the prefix", func(s *Store[string]) { _ = s.Put("b/2", "blue") }, "prefix range all len"},
		{"remove", func(s *Store[string]) { s.Remove("b/1") }, "get prefix range all len lookup lookup-prefix lookup-range"},
		{"remove nothing", func(s *Store[string]) { s.Remove("nothing") }, ""},
		{"bookmark", func(s *Store[string]) { s.SetVersion("9") }, ""},
		{"replace by the same", func(s *Store[string]) {
			_ = s.Replace([]tarn.Item[string]{{Meta: tarn.Meta{Key: "a"}, Object: "blue"}, {Meta: tarn.Meta{Key: "b/1"}, Object: "red big"}}, "5")
		}, "get prefix range all lookup lookup-prefix lookup-range"},
		{"another leaves its value", func(s *Store[string]) { _ = s.Put("a", "green") }, "all"},
		{"drop", func(s *Store[string]) { _ = s.DropIndex("words") }, "lookup lookup-prefix lookup-range"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := filled(t, map[tarn.Key]string{"a": "blue", "b/1": "red big"})
			if err := s.AddIndex("words", IndexFunc(words)); err != nil {
				t.Fatal(err)
			}
			channels := map[string]<-chan struct{}{}
			_, _, channels["get"] = s.GetWatch("b/1")
			_, channels["len"] = s.LenWatch()
			_, channels["all"] = s.AllWatch()
			_, channels["prefix"] = s.PrefixWatch("b/")
			_, channels["range"] = s.RangeWatch("b", "c")
			var err [3]error
			_, channels["lookup"], err[0] = s.LookupWatch("words", "red")
			_, channels["lookup-prefix"], err[1] = s.LookupPrefixWatch("words", "re")
			_, channels["lookup-range"], err[2] = s.LookupRangeWatch("words", []any{"r"}, []any{"s"})
			if err != [3]error{} {
				t.Fatal(err)
			}
			for name, ch := range channels {
				if closed(ch) {
					t.Errorf("%s is closed before the write", name)
				}
			}
			test.write(s)
			for name, ch := range channels {
				want := slices.Contains(slices.Collect(splitWords(test.want)), name)
				if closed(ch) != want {
					t.Errorf("%s: closed %v, want %v", name, closed(ch), want)
				}
			}
		})
	}
}

func splitWords(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		fields, _ := words(text)
		for _, word := range fields {
			if !yield(word) {
				return
			}
		}
	}
}

// While a channel is open, what it was given with holds.
func TestOpenChannelMeansUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New[string]()
		if err := s.AddIndex("words", IndexFunc(words)); err != nil {
			t.Fatal(err)
		}
		aKey := rapid.Map(rapid.StringMatching("[abc]{1,3}"), func(s string) tarn.Key { return tarn.Key(s) })
		aText := rapid.SampledFrom([]string{"red", "blue", "red blue", "rose", "", "!broken"})
		type watched struct {
			what    string
			read    func() string
			was     string
			changed <-chan struct{}
		}
		var all []watched
		text := func(found func(func(tarn.Key, string) bool)) string { return fmt.Sprint(maps.Collect(found)) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, w := range all {
					if now := w.read(); now != w.was && !closed(w.changed) {
						t.Fatalf("%s was %s and is %s, but its channel is open", w.what, w.was, now)
					}
				}
				all = slices.DeleteFunc(all, func(w watched) bool { return closed(w.changed) })
			},
			"put":    func(t *rapid.T) { _ = s.Put(aKey.Draw(t, "key"), aText.Draw(t, "text")) },
			"remove": func(t *rapid.T) { s.Remove(aKey.Draw(t, "key")) },
			"replace": func(t *rapid.T) {
				var items []tarn.Item[string]
				for key := range rapid.MapOfN(aKey, rapid.Just(true), 0, 4).Draw(t, "keys") {
					items = append(items, tarn.Item[string]{Meta: tarn.Meta{Key: key}, Object: aText.Draw(t, "text")})
				}
				_ = s.Replace(items, "")
			},
			"watch": func(t *rapid.T) {
				key, to := aKey.Draw(t, "key"), aKey.Draw(t, "to")
				w := watched{}
				switch rapid.IntRange(0, 6).Draw(t, "what") {
				case 0:
					w.what, w.read = "Get", func() string { o, ok := s.Get(key); return fmt.Sprint(o, ok) }
					_, _, w.changed = s.GetWatch(key)
				case 1:
					w.what, w.read = "Prefix", func() string { return text(s.Prefix(key)) }
					_, w.changed = s.PrefixWatch(key)
				case 2:
					w.what, w.read = "Range", func() string { return text(s.Range(key, to)) }
					_, w.changed = s.RangeWatch(key, to)
				case 3:
					w.what, w.read = "Len", func() string { return fmt.Sprint(s.Len()) }
					_, w.changed = s.LenWatch()
				case 4:
					w.what, w.read = "All", func() string { return text(s.All()) }
					_, w.changed = s.AllWatch()
				case 5:
					w.what, w.read = "Lookup", func() string { found, _ := s.Lookup("words", "red"); return text(found) }
					_, w.changed, _ = s.LookupWatch("words", "red")
				case 6:
					w.what, w.read = "LookupPrefix", func() string { found, _ := s.LookupPrefix("words", "r"); return text(found) }
					_, w.changed, _ = s.LookupPrefixWatch("words", "r")
				}
				w.was = w.read()
				all = append(all, w)
			},
		})
	})
}

// A large write tells those who watch a value that an object has left, or come to.
func TestWatchALargeWrite(t *testing.T) {
	s := New[string]()
	if err := s.AddIndex("words", IndexFunc(words)); err != nil {
		t.Fatal(err)
	}
	content := func(first string) (all []tarn.Item[string]) {
		for i := range 500 {
			all = append(all, tarn.Item[string]{Meta: tarn.Meta{Key: tarn.Key(fmt.Sprintf("%03d", i))}, Object: "blue"})
		}
		all[0].Object = first
		return all
	}
	if err := s.Replace(content("red"), "1"); err != nil {
		t.Fatal(err)
	}
	channels := map[string]<-chan struct{}{}
	for _, value := range []string{"red", "green", "grey"} {
		var err error
		if _, channels[value], err = s.LookupWatch("words", value); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Replace(content("green"), "2"); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{"red": true, "green": true, "grey": false} {
		if closed(channels[value]) != want {
			t.Errorf("the channel of %s is closed: %t, want %t", value, !want, want)
		}
	}
}
