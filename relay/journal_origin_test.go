package relay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// Once it is known that a directory is of another cluster, its content is neither served nor
// written again, even if the relay stops before it has read the origin.
func TestContentOfAnotherOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cluster := func(name string) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { return name, nil }
		}
		list := func(r *journalRig) (string, error) {
			listing, err := r.List(t.Context(), "", apiserver.At{Match: apiserver.NotOlder})
			var names string
			for _, o := range listing.Objects {
				names += o.Key() + " "
			}
			return names, err
		}
		r := newJournalRig(t, dir)
		r.serverUID = cluster("one")
		if err := r.confirmServer(t.Context(), r.journal); err != nil {
			t.Fatal(err)
		}
		r.update(3)
		r.Close()

		r = newJournalRig(t, dir)
		if names, err := list(r); err != nil || names == "" {
			t.Fatalf("before anything is known: %q, %v", names, err)
		}
		watch, err := r.Watch(t.Context(), apiserver.WatchQuery{At: apiserver.At{Match: apiserver.NotOlder, Version: r.model.version}})
		if err != nil {
			t.Fatal(err)
		}
		r.serverUID = cluster("two")
		if err := r.confirmServer(t.Context(), r.journal); !errors.Is(err, tarn.ErrOtherSource) {
			t.Fatal(err)
		}
		if names, err := list(r); err == nil {
			t.Errorf("the content of another cluster is served: %s", names)
		}
		if _, _, err := watch.Next(); err == nil {
			t.Error("a watch of another cluster continues")
		}
		watch.Close()
		r.Close()

		again, kept := diskState(t, dir, 1<<20)
		if len(kept.Positions) > 0 || len(again.content.objects) > 0 {
			t.Errorf("%d objects of another cluster are on disk, at %v", len(again.content.objects), kept.Positions)
		}
		r = &journalRig{t: t, durableState: again, model: model{resource: s2resource(t), version: 5}}
		defer r.Close()
		r.take(tarn.Batch[Object]{Whole: true})
		if _, err := list(r); err != nil {
			t.Error(err)
		}
	})
}
