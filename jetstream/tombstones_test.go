package jetstream

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// heldKeys are the objects of a bucket.
func heldKeys(t *testing.T, s *Sink[object]) (keys []string) {
	t.Helper()
	for m, err := range s.Held(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(m.Key)+"@"+string(m.Version))
	}
	slices.Sort(keys)
	return keys
}

// messagesOf counts the messages of a key. The last one may expire soon.
func messagesOf(t *testing.T, s *Sink[object], key string) uint64 {
	t.Helper()
	stream, err := s.js.Stream(t.Context(), s.bucket.stream())
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(s.bucket.prefix()+key))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Subjects[s.bucket.prefix()+key]
}

// An object that was deleted stays deleted when the bucket forgets its delete, whether the
// bucket keeps earlier states or not. One that was made again is not touched.
func TestForgottenDeletes(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for _, b := range []Bucket{{Name: "one", Tombstones: time.Second}, {Name: "many", History: 5, Tombstones: time.Second}} {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			s := opened(t, server.connect(), b)
			defer s.Close()
			commit(t, s, to("3", change(tarn.Add, "a", "1", "x"), change(tarn.Add, "b", "2", "x"), change(tarn.Add, "c", "3", "x")))
			commit(t, s, to("5", change(tarn.Update, "a", "4", "y"), change(tarn.Update, "b", "5", "y")))
			commit(t, s, to("7", change(tarn.Delete, "a", "6", "y"), change(tarn.Delete, "b", "7", "y")))
			commit(t, s, to("8", change(tarn.Add, "b", "8", "z")))
			eventually(t, "the delete is forgotten", func() bool { return messagesOf(t, s, "a") <= 1 && !remembers(t, s, "a") }, func() string { return fmt.Sprint(messagesOf(t, s, "a")) })
			if got := heldKeys(t, s); !slices.Equal(got, []string{"b@8", "c@3"}) {
				t.Errorf("the bucket has %v", got)
			}
			if n := messagesOf(t, s, "b"); b.History > 1 && n != 4 {
				t.Errorf("it has %d states of the object that was made again", n)
			}
			commit(t, s, to("9", change(tarn.Add, "a", "9", "again")))
			if got := heldKeys(t, s); !slices.Equal(got, []string{"a@9", "b@8", "c@3"}) {
				t.Errorf("the bucket has %v", got)
			}
		})
	}
}

// A marker that the server would remove, as older versions wrote them in buckets with a history,
// is replaced before that.
func TestMarkersOfOlderVersions(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", History: 5, Tombstones: time.Minute}
	s := opened(t, server.connect(), b)
	commit(t, s, to("2", change(tarn.Add, "a", "1", "x"), change(tarn.Update, "a", "2", "y")))
	s.stop()
	s.running.Wait() // nobody else reads the bucket's settings
	s.bucket.History = 1
	commit(t, s, to("3", change(tarn.Delete, "a", "3", "y")))
	s.Close()
	s = opened(t, server.connect(), b)
	defer s.Close()
	eventually(t, "nothing is before the marker", func() bool { return messagesOf(t, s, "a") == 1 && !remembers(t, s, "a") }, func() string { return fmt.Sprint(messagesOf(t, s, "a")) })
	if got := heldKeys(t, s); len(got) > 0 {
		t.Errorf("the bucket has %v", got)
	}
}

// remembers says whether the bucket still has the marker of a delete.
func remembers(t *testing.T, s *Sink[object], key string) bool {
	t.Helper()
	r, found, err := s.last(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return found && !isPurge(r.header)
}

// A reader neither lists again nor loses anything when deletes are forgotten, and neither does
// one that begins afterwards.
func TestReadersOfForgottenDeletes(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", History: 5, Tombstones: time.Second}
	origin := newOrigin()
	for i := range 20 {
		origin.put(tarn.Key(fmt.Sprint("k", i)), "one")
	}
	sink := newSink(t, server.connect(), b)
	feeder := follow(t, origin, sink)
	second := follow(t, newSource(t, server.connect(), b))
	same := func(r *tarn.Replica[object]) func() bool {
		return func() bool { return r.Version() == origin.at() && maps.Equal(contents(r), origin.content()) }
	}
	eventually(t, "the second copy follows", same(second), func() string { return second.Health().String() })
	lists := second.Health().Lists
	for i := range 10 {
		origin.put(tarn.Key(fmt.Sprint("k", i)), "two")
		origin.remove(tarn.Key(fmt.Sprint("k", i)))
	}
	eventually(t, "the deletes are forgotten", func() bool {
		for i := range 10 {
			if remembers(t, sink, fmt.Sprint("k", i)) {
				return false
			}
		}
		return same(feeder)()
	}, func() string { return feeder.Health().String() })
	origin.put("k3", "again")
	eventually(t, "the second copy follows", same(second), func() string { return second.Health().String() })
	if now := second.Health().Lists; !maps.Equal(now, lists) {
		t.Errorf("the second copy listed: %v, before %v", now, lists)
	}
	third := follow(t, newSource(t, server.connect(), b))
	eventually(t, "a third copy has everything", same(third), func() string { return third.Health().String() })
}

// A bucket had a history, and is fed with one state of each object now. The markers of deletes
// that it had, which do not expire, are forgotten too, and not those that expire by themselves.
// Objects that were made again stay.
func TestMarkersOfAHistoryThatEnded(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", History: 5, Tombstones: time.Minute}
	s := opened(t, server.connect(), b)
	commit(t, s, to("4", change(tarn.Add, "a", "1", "x"), change(tarn.Add, "b", "2", "x"), change(tarn.Add, "c", "3", "x"), change(tarn.Add, "d", "4", "x")))
	commit(t, s, to("6", change(tarn.Delete, "a", "5", "x"), change(tarn.Delete, "b", "6", "x")))
	commit(t, s, to("7", change(tarn.Add, "b", "7", "again")))
	s.Close()
	b.History = 1
	s = opened(t, server.connect(), b)
	commit(t, s, to("8", change(tarn.Delete, "c", "8", "x")))
	s.Close()
	reader := follow(t, newSource(t, server.connect(), b))
	eventually(t, "the copy has the objects", func() bool { return len(contents(reader)) == 2 }, func() string { return reader.Health().String() })
	lists := reader.Health().Lists

	b.Tombstones = time.Second
	s = opened(t, server.connect(), b)
	defer s.Close()
	eventually(t, "the delete is forgotten", func() bool { return !remembers(t, s, "a") }, func() string { return fmt.Sprint(messagesOf(t, s, "a")) })
	if !remembers(t, s, "c") {
		t.Error("a marker that expires by itself was replaced")
	}
	if got := heldKeys(t, s); !slices.Equal(got, []string{"b@7", "d@4"}) {
		t.Errorf("the bucket has %v", got)
	}
	commit(t, s, to("9", change(tarn.Add, "a", "9", "again")))
	if got := heldKeys(t, s); !slices.Equal(got, []string{"a@9", "b@7", "d@4"}) {
		t.Errorf("the bucket has %v", got)
	}
	eventually(t, "the copy follows", func() bool { return len(contents(reader)) == 3 }, func() string { return reader.Health().String() })
	if now := reader.Health().Lists; !maps.Equal(now, lists) {
		t.Errorf("the copy listed: %v, before %v", now, lists)
	}
}
