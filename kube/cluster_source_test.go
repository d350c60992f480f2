package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
)

// named is a source of names that records what it was asked.
type named struct {
	asked tarn.ListQuery
	watch tarn.WatchQuery
}

func (n *named) List(_ context.Context, q tarn.ListQuery) (tarn.Page[string], error) {
	n.asked = q
	return tarn.Page[string]{Items: []string{"shop/web"}, Bad: []tarn.BadObject{{Key: "shop/bad"}, {}}}, nil
}

func (n *named) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[string], error) {
	n.watch = q
	return &namedStream{}, nil
}

func (*named) Describe(name string) (tarn.Meta, error) {
	if name == "" {
		return tarn.Meta{}, errors.New("no name")
	}
	return tarn.Meta{Key: tarn.Key(name), UID: "u"}, nil
}

// Maintain reports an object that it remembers, and all that are held.
func (*named) Maintain(_ context.Context, held tarn.Copy[string]) {
	damaged := []tarn.Damage{{Key: "shop/web"}}
	for key := range held.All() {
		damaged = append(damaged, tarn.Damage{Key: key})
	}
	held.Repair(damaged)
}

type namedStream struct{ ended bool }

func (s *namedStream) Next(_ context.Context, buf []tarn.Event[string]) (int, error) {
	if s.ended {
		return 0, io.EOF
	}
	s.ended = true
	buf[0] = tarn.Event[string]{Type: tarn.EventModified, Bad: tarn.BadObject{Key: "shop/bad", Err: errors.New("bad")}}
	buf[1] = tarn.Event[string]{Type: tarn.EventAdded, Object: "shop/web"}
	return 2, nil
}

func (*namedStream) Close() {}

// heldNames holds objects under their full keys.
type heldNames map[tarn.Key]string

func (h heldNames) Held(key tarn.Key) (any, bool) { object, ok := h[key]; return object, ok }
func (h heldNames) Len() int                      { return len(h) }

type repaired struct {
	held heldNames
	keys []tarn.Key
}

func (r *repaired) All() iter.Seq2[tarn.Key, string] { return maps.All(r.held) }

func (r *repaired) Repair(damaged []tarn.Damage) {
	for _, d := range damaged {
		r.keys = append(r.keys, d.Key)
	}
}

// Outside, keys begin with the cluster; the server is asked for its own.
func TestInCluster(t *testing.T) {
	inner := &named{}
	source, err := InCluster[string]("east", inner)
	if err != nil {
		t.Fatal(err)
	}
	held := heldNames{"east/shop/web": "held"}
	page, err := source.List(t.Context(), tarn.ListQuery{Key: "east/shop/web", Held: held})
	if err != nil || page.Bad[0].Key != "east/shop/bad" || page.Bad[1].Key != "" {
		t.Errorf("%v: bad %v", err, page.Bad)
	}
	if object, ok := inner.asked.Held.Held("shop/web"); inner.asked.Key != "shop/web" || !ok || object != "held" {
		t.Errorf("the server was asked for %q, and %v is held", inner.asked.Key, object)
	}
	if m, err := source.Describe("shop/web"); err != nil || m.Key != "east/shop/web" || m.UID != "u" {
		t.Errorf("%v %v", m, err)
	}
	if m, err := source.Describe(""); err == nil || m.Key != "" {
		t.Errorf("an object without a name is %v", m)
	}
	stream, err := source.Watch(t.Context(), tarn.WatchQuery{})
	if err != nil || inner.watch.Held != nil {
		t.Fatalf("%v; held is %v", err, inner.watch.Held)
	}
	buf := make([]tarn.Event[string], 4)
	if n, err := stream.Next(t.Context(), buf); n != 2 || err != nil || buf[0].Bad.Key != "east/shop/bad" || buf[1].Bad.Key != "" {
		t.Errorf("%d events, %v: %v", n, err, buf[:n])
	}
	found := &repaired{held: heldNames{"east/shop/db": "db"}}
	source.(tarn.Maintainer[string]).Maintain(t.Context(), found)
	if fmt.Sprint(found.keys) != "[east/shop/web east/shop/db]" {
		t.Errorf("repaired %v", found.keys)
	}
	if cluster, key := SplitCluster("east/shop/web"); cluster != "east" || key != "shop/web" {
		t.Errorf("%q %q", cluster, key)
	}
	for _, name := range []string{"", "a/b", ".", "..", "caf\xe9", "a\nb", "\x1b[2Jeast", strings.Repeat("x", 254)} {
		if _, err := InCluster[string](name, inner); err == nil {
			t.Errorf("%q is the name of a cluster", name)
		}
	}
}

// A cluster may have the name of one of its namespaces: keys in it begin as keys of the copy.
func TestInClusterNamedAsItsNamespace(t *testing.T) {
	source, err := InCluster[string]("shop", &named{})
	if err != nil {
		t.Fatal(err)
	}
	found := &repaired{held: heldNames{"shop/shop/db": "db"}}
	source.(tarn.Maintainer[string]).Maintain(t.Context(), found)
	if fmt.Sprint(found.keys) != "[shop/shop/web shop/shop/db]" {
		t.Errorf("repaired %v", found.keys)
	}
}
