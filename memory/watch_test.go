package memory

import (
	"context"
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

// A channel is closed by each write that changes the result, and by no other write.
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
			_ = s.Replace([]tarn.Item[string]{{Meta: tarn.Meta{Key: "a"}, Object: "blue"}, {Meta: tarn.Meta{Key: "b/1"}, Object: "red big"}}, tarn.At("5"))
		}, "get prefix range all lookup lookup-prefix lookup-range"},
		{"another leaves its value", func(s *Store[string]) { _ = s.Put("a", "green") }, "all"},
		{"drop", func(s *Store[string]) { _ = s.DropIndex("words") }, "lookup lookup-prefix lookup-range"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			s := filled(t, map[tarn.Key]string{"a": "blue", "b/1": "red big"})
			if err := s.AddIndex("words", IndexFunc(words)); err != nil {
				t.Fatal(err)
			}
			channels := map[string]<-chan struct{}{}
			_, _, channels["get"] = s.GetWatch(ctx, "b/1")
			_, channels["len"] = s.LenWatch(ctx)
			_, channels["all"] = s.AllWatch(ctx)
			_, channels["prefix"] = s.PrefixWatch(ctx, "b/")
			_, channels["range"] = s.RangeWatch(ctx, "b", "c")
			var err [3]error
			_, channels["lookup"], err[0] = s.LookupWatch(ctx, "words", "red")
			_, channels["lookup-prefix"], err[1] = s.LookupPrefixWatch(ctx, "words", "re")
			_, channels["lookup-range"], err[2] = s.LookupRangeWatch(ctx, "words", []any{"r"}, []any{"s"})
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

// While a channel is open, its result holds and its context lasts; and the store
// remembers only open channels.
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
			ctx     context.Context
			changed <-chan struct{}
		}
		var all []watched
		readers := make([]context.Context, 3)
		ends := make([]context.CancelFunc, len(readers))
		for i := range readers {
			readers[i], ends[i] = context.WithCancel(context.Background())
			defer func() { ends[i]() }()
		}
		text := func(found func(func(tarn.Key, string) bool)) string { return fmt.Sprint(maps.Collect(found)) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				open := map[<-chan struct{}]bool{}
				for _, w := range all {
					switch now := w.read(); {
					case closed(w.changed):
					case now != w.was:
						t.Fatalf("%s was %s and is %s, but its channel is open", w.what, w.was, now)
					case w.ctx.Err() != nil:
						t.Fatalf("the context of %s has ended, but its channel is open", w.what)
					default:
						open[w.changed] = true
					}
				}
				if n := registered(s); n != len(open) {
					t.Fatalf("%d channels are open, and %d are registered", len(open), n)
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
				_ = s.Replace(items, tarn.At(""))
			},
			"end": func(t *rapid.T) {
				i := rapid.IntRange(0, len(readers)-1).Draw(t, "reader")
				ends[i]()
				for _, w := range all {
					if w.ctx == readers[i] {
						<-w.changed
					}
				}
				readers[i], ends[i] = context.WithCancel(context.Background())
			},
			"watch": func(t *rapid.T) {
				key, to := aKey.Draw(t, "key"), aKey.Draw(t, "to")
				ctx := rapid.SampledFrom(readers).Draw(t, "reader")
				w := watched{ctx: ctx}
				switch rapid.IntRange(0, 6).Draw(t, "what") {
				case 0:
					w.what, w.read = "Get", func() string { o, ok := s.Get(key); return fmt.Sprint(o, ok) }
					_, _, w.changed = s.GetWatch(ctx, key)
				case 1:
					w.what, w.read = "Prefix", func() string { return text(s.Prefix(key)) }
					_, w.changed = s.PrefixWatch(ctx, key)
				case 2:
					w.what, w.read = "Range", func() string { return text(s.Range(key, to)) }
					_, w.changed = s.RangeWatch(ctx, key, to)
				case 3:
					w.what, w.read = "Len", func() string { return fmt.Sprint(s.Len()) }
					_, w.changed = s.LenWatch(ctx)
				case 4:
					w.what, w.read = "All", func() string { return text(s.All()) }
					_, w.changed = s.AllWatch(ctx)
				case 5:
					w.what, w.read = "Lookup", func() string { found, _ := s.Lookup("words", "red"); return text(found) }
					_, w.changed, _ = s.LookupWatch(ctx, "words", "red")
				case 6:
					w.what, w.read = "LookupPrefix", func() string { found, _ := s.LookupPrefix("words", "r"); return text(found) }
					_, w.changed, _ = s.LookupPrefixWatch(ctx, "words", "r")
				}
				w.was = w.read()
				all = append(all, w)
			},
		})
	})
}

// registered counts the channels that a store and its indexes remember, after a
// check that their counts agree.
func registered[T any](s *Store[T]) (n int) {
	all := []*watchers{&s.watchers}
	for _, x := range s.current.Load().indexes {
		all = append(all, &x.watchers)
	}
	for _, w := range all {
		w.mu.Lock()
		defer w.mu.Unlock()
		topics := []*topic{&w.size}
		topics = slices.AppendSeq(topics, maps.Values(w.keys))
		topics = w.spans.root.all(topics)
		waiting, leased := 0, 0
		for _, t := range topics {
			waiting += len(t.waiting)
			if len(t.waiting) == 0 && t != &w.size {
				panic("a topic that nobody waits for is kept")
			}
		}
		for _, l := range w.leases {
			leased += len(l.registered)
			if len(l.registered) == 0 {
				panic("a lease without a registration is kept")
			}
		}
		if waiting != leased || int64(leased) != w.count.Load() {
			panic(fmt.Sprintf("%d wait, %d are leased, %d are counted", waiting, leased, w.count.Load()))
		}
		n += leased
	}
	if n != s.Watching() {
		panic(fmt.Sprintf("%d are registered, Watching says %d", n, s.Watching()))
	}
	return n
}

func (n *spanNode) all(topics []*topic) []*topic {
	if n == nil {
		return topics
	}
	return n.right.all(append(n.left.all(topics), &n.topic))
}

// The same read with the same context returns the same channel; another context has
// its own, which ends with it alone.
func TestWatchPerContext(t *testing.T) {
	s := New[string]()
	first, end := context.WithCancel(t.Context())
	second := t.Context()
	_, _, a := s.GetWatch(first, "a")
	_, _, again := s.GetWatch(first, "a")
	_, _, b := s.GetWatch(second, "a")
	if a != again || a == b || registered(s) != 2 {
		t.Fatalf("same %v, other %v, %d are registered", a == again, a == b, registered(s))
	}
	end()
	<-a
	if closed(b) || registered(s) != 1 {
		t.Errorf("the other is closed %v, %d are registered", closed(b), registered(s))
	}
	if _, _, late := s.GetWatch(first, "a"); !closed(late) || registered(s) != 1 {
		t.Errorf("after the end: closed %v, %d are registered", closed(late), registered(s))
	}
	_, forever := s.PrefixWatch(context.Background(), "a")
	if err := s.Put("a", "x"); err != nil {
		t.Fatal(err)
	}
	if !closed(b) || !closed(forever) || registered(s) != 0 {
		t.Errorf("after the write: closed %v and %v, %d are registered", closed(b), closed(forever), registered(s))
	}
}

// Registrations with a context end with it, however many they are.
func TestWatchesOfAContextGo(t *testing.T) {
	s := New[string]()
	if err := s.AddIndex("words", IndexFunc(words)); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var channels []<-chan struct{}
	for i := range 3 * expireChunk {
		name := fmt.Sprint("absent-", i)
		_, _, key := s.GetWatch(ctx, tarn.Key(name))
		_, prefix := s.PrefixWatch(ctx, tarn.Key(name))
		_, value, err := s.LookupWatch(ctx, "words", name)
		if err != nil {
			t.Fatal(err)
		}
		channels = append(channels, key, prefix, value)
	}
	if n := registered(s); n != len(channels) {
		t.Fatalf("%d of %d are registered", n, len(channels))
	}
	end()
	for _, changed := range channels {
		<-changed
	}
	if n := registered(s); n != 0 {
		t.Errorf("%d are still registered", n)
	}
	if s.watchers.spans.root != nil || len(s.watchers.keys) != 0 {
		t.Error("something is kept for them")
	}
}

// The channel of a dropped index is closed, also one that is requested during the
// drop.
func TestWatchADroppedIndex(t *testing.T) {
	s := New[string]()
	if err := s.AddIndex("words", IndexFunc(words)); err != nil {
		t.Fatal(err)
	}
	x, err := s.current.Load().index("words")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DropIndex("words"); err != nil {
		t.Fatal(err)
	}
	if changed := x.watchers.within(t.Context(), exactly("red")); !closed(changed) || x.watchers.count.Load() != 0 {
		t.Error("an index that is no more is watched")
	}
}

// A large write notifies watchers of a value that an object has left or reached.
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
	if err := s.Replace(content("red"), tarn.At("1")); err != nil {
		t.Fatal(err)
	}
	channels := map[string]<-chan struct{}{}
	for _, value := range []string{"red", "green", "grey"} {
		var err error
		if _, channels[value], err = s.LookupWatch(t.Context(), "words", value); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Replace(content("green"), tarn.At("2")); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{"red": true, "green": true, "grey": false} {
		if closed(channels[value]) != want {
			t.Errorf("the channel of %s is closed: %t, want %t", value, !want, want)
		}
	}
}
