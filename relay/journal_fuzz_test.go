package relay

import (
	"bytes"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// sampleChunk has every sort of event.
func sampleChunk(t testing.TB) *chunk {
	of, _ := apiserver.BuiltinResource(pods)
	m := &model{resource: of, version: 1}
	at := func(name string) Object { m.version++; return m.object(name, "uid", "a") }
	a, b, c := at("x"), at("x"), at("y")
	now := time.Unix(1000, 0)
	return &chunk{position: tarn.Position{Version: "9", Epoch: "e", Complete: true}, contact: now, events: []*apiserver.Event{
		{Type: watch.Added, Version: 2, Heard: now, Object: a},
		{Type: watch.Modified, Version: 3, Heard: now, Old: a, Object: b},
		{Version: 8, Heard: now, Gap: &apiserver.Gap{From: 3, Changes: []*apiserver.GapChange{{Old: b}, {New: c}}}},
		{Type: watch.Deleted, Version: 9, Heard: now, Old: c, Object: at("y")},
	}}
}

func encoded(t testing.TB, c *chunk) []byte {
	data, ok := c.encode(mostBlock)
	if !ok {
		t.Fatal("the chunk is too large")
	}
	return data
}

// What is read is what was written, and anything else is an error.
func FuzzChunk(f *testing.F) {
	of, _ := apiserver.BuiltinResource(pods)
	f.Add(encoded(f, sampleChunk(f)))
	f.Add(encoded(f, &chunk{contact: time.Unix(0, 0)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeChunk(of, data)
		if err != nil {
			return
		}
		again, err := decodeChunk(of, encoded(t, c))
		if err != nil || len(again.events) != len(c.events) || !bytes.Equal(encoded(t, again), encoded(t, c)) {
			t.Errorf("%v: %d events, then %d", err, len(c.events), len(again.events))
		}
	})
}

// Objects are the same bytes, and one object is one object.
func TestChunk(t *testing.T) {
	of, _ := apiserver.BuiltinResource(pods)
	written := sampleChunk(t)
	read, err := decodeChunk(of, encoded(t, written))
	if err != nil {
		t.Fatal(err)
	}
	if read.position != written.position || !read.contact.Equal(written.contact) || len(read.events) != 4 {
		t.Errorf("%+v", read)
	}
	for i, e := range written.events {
		got := read.events[i]
		if got.Type != e.Type || got.Version != e.Version || (got.Gap == nil) != (e.Gap == nil) || !same(got.Object, e.Object) || !same(got.Old, e.Old) {
			t.Errorf("event %d is %+v", i, got)
		}
	}
	if gap := read.events[2].Gap; gap.From != 3 || !same(gap.Changes[0].Old, written.events[1].Object) || gap.Changes[0].New != nil || gap.Changes[0].Old != read.events[1].Object {
		t.Errorf("%+v", gap)
	}
}

func same(a, b Object) bool {
	return a == b || a != nil && b != nil && sameBytes(a, b) && a.Key() == b.Key() && a.Version() == b.Version()
}
