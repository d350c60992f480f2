package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// What somebody else writes or deletes in a bucket is not mistaken for a state of the origin:
// a reader names it, at once, and a feeder that is started again compares everything.
func TestForeignWrites(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	for name, do := range map[string]func(ctx context.Context, kv jetstream.KeyValue) error{
		"put": func(ctx context.Context, kv jetstream.KeyValue) error {
			_, err := kv.PutString(ctx, "a", `{"Key": "a", "Version": "1", "Text": "forged"}`)
			return err
		},
		"delete": func(ctx context.Context, kv jetstream.KeyValue) error { return kv.Delete(ctx, "a") },
		"purge":  func(ctx context.Context, kv jetstream.KeyValue) error { return kv.Purge(ctx, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			b := Bucket{Name: name}
			s := opened(t, js, b)
			commit(t, s, to("2", change(tarn.Add, "a", "1", "x"), change(tarn.Add, "b", "2", "x")))
			source := newSource(t, js, b)
			watch, err := source.Watch(t.Context(), tarn.WatchQuery{From: "2"})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			kv, err := js.KeyValue(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if err := do(t.Context(), kv); err != nil {
				t.Fatal(err)
			}
			s.Close() // nobody writes a checkpoint after it
			page, err := source.List(t.Context(), tarn.ListQuery{})
			if err != nil || len(page.Items) != 1 || len(page.Bad) != 1 || page.Bad[0].Key != "a" {
				t.Errorf("the list has %v and, as bad ones, %v (%v)", page.Items, page.Bad, err)
			}
			s = opened(t, js, b)
			defer s.Close()
			if all, err := s.Load(t.Context()); !errors.Is(err, errUnusable) {
				t.Errorf("a feeder begins with %v (%v)", all, err)
			}
			events := make([]tarn.Event[object], 8)
			if n, err := watch.Next(t.Context(), events); err != nil || n == 0 || events[0].Bad.Key != "a" {
				t.Errorf("the watch says %v (%v)", events[:n], err)
			}
		})
	}
}

// A bucket that somebody has bounded, and a stream that was bounded, may have dropped objects:
// the feeder removes the bounds, and begins without what is there. Other settings are mended,
// and those that do not matter stay.
func TestSettingsChangedByHand(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	for name, c := range map[string]struct {
		edit    func(c *jetstream.StreamConfig)
		dropped bool
	}{
		"messages":      {func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 3, jetstream.DiscardOld }, true},
		"bytes":         {func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 1<<20, jetstream.DiscardOld }, true},
		"age":           {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, true},
		"message-size":  {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }, false},
		"batches":       {func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }, false},
		"what-is-fine":  {func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{"owner": "us"} }, false},
		"fine-and-more": {func(c *jetstream.StreamConfig) { c.Metadata, c.MaxMsgsPerSubject = map[string]string{"owner": "us"}, 3 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := Bucket{Name: name}
			s := opened(t, js, b)
			commit(t, s, to("1", change(tarn.Add, "a", "1", "x")))
			s.Close()
			stream, err := js.Stream(t.Context(), b.stream())
			if err != nil {
				t.Fatal(err)
			}
			edited := stream.CachedInfo().Config
			c.edit(&edited)
			if _, err := js.UpdateStream(t.Context(), edited); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time it is as it should be, and still not compared
				s = newSink(t, js, b)
				kept, err := s.Open(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(kept.Positions) == 0 != c.dropped {
					t.Errorf("it begins at %v", kept.Positions)
				}
				s.Close()
			}
			s = opened(t, js, b)
			commit(t, s, to("2", change(tarn.Add, "large", "2", strings.Repeat("x", 2000))))
			s.Close()
			info, err := stream.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			have, want := info.Config, b.config()
			if have.MaxMsgs != want.MaxMsgs || have.MaxBytes != want.MaxBytes || have.MaxAge != want.MaxAge || have.Discard != want.Discard || have.MaxMsgsPerSubject != 1 {
				t.Errorf("it is kept as %+v", have)
			}
			if edited.Metadata["owner"] != "" && have.Metadata["owner"] != "us" {
				t.Errorf("the metadata is %v", have.Metadata)
			}
		})
	}
}

// A feeder that waits for another one does not change the other one's bucket.
func TestWaitingFeederChangesNothing(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	js := server.connect()
	s := opened(t, js, Bucket{Name: "b", History: 5})
	defer s.Close()
	for i := range 5 {
		v := tarn.Version(fmt.Sprint(i + 1))
		commit(t, s, to(v, change(tarn.Update, "a", v, string(v))))
	}
	if _, err := newSink(t, server.connect(), Bucket{Name: "b"}).Open(t.Context(), nil); !errors.Is(err, ErrFed) {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := kv.History(t.Context(), "a"); err != nil || len(all) != 5 {
		t.Errorf("%d states are left (%v)", len(all), err)
	}
}

// A bucket of another source is known as one to the next process too, if this one ends
// before it has written anything.
func TestOtherSourceIsRemembered(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	open := func(uid string) (*Sink[object], tarn.Kept) {
		t.Helper()
		s := newSink(t, js, Bucket{Name: "b", Source: func(context.Context) (string, error) { return uid, nil }})
		kept, err := s.Open(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s, kept
	}
	s, kept := open("one")
	if err := kept.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, to("5", change(tarn.Add, "a", "5", "of one")))
	s.Close()
	s, kept = open("two")
	if err := kept.Confirm(t.Context()); !errors.Is(err, tarn.ErrOtherSource) {
		t.Fatal(err)
	}
	s.Close()
	s, kept = open("two")
	defer s.Close()
	if err := kept.Confirm(t.Context()); err == nil && len(kept.Positions) > 0 {
		t.Errorf("what another source wrote counts as this one's: it begins at %v", kept.Positions)
	}
}

// An object whose key is too long for the bucket is known to be missing after a restart, and
// no longer once it is deleted.
func TestKeyTooLong(t *testing.T) {
	t.Parallel()
	js := startServer(t).connect()
	b, long := Bucket{Name: "b"}, tarn.Key(strings.Repeat("k", 3000))
	s := opened(t, js, b)
	if err := s.Commit(t.Context(), to("1", change(tarn.Add, long, "1", "x"), change(tarn.Add, "a", "1", "x"))); err == nil || !tarn.Taken(err) {
		t.Fatalf("Commit says %v", err)
	}
	s.Close()
	s = newSink(t, js, b)
	defer s.Close()
	kept, err := s.Open(t.Context(), nil)
	if err != nil || kept.Positions[0].Complete {
		t.Errorf("it begins at %v (%v)", kept.Positions, err)
	}
	if page, err := newSource(t, js, b).List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Bad) != 1 || page.Bad[0].Key != long {
		t.Errorf("a reader is told of %d (%v)", len(page.Bad), err)
	}
	commit(t, s, to("2", change(tarn.Delete, long, "2", "")))
	if page, err := newSource(t, js, b).List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Bad) != 0 {
		t.Errorf("after its delete a reader is told of %.100v (%v)", page.Bad, err)
	}
}

// Many bad objects are read by few requests, or a server that is far away could not be opened
// in time.
func TestManyBadObjects(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b"}
	s := opened(t, server.connect(), b)
	var changes []tarn.Change[object]
	for i := range 300 {
		v := tarn.Version(fmt.Sprint(i + 1))
		changes = append(changes, change(tarn.Add, tarn.Key(fmt.Sprint(i, "/", strings.Repeat("k", 2*longestKey))), v, "x"))
	}
	if err := s.Commit(t.Context(), to("300", changes...)); !tarn.Taken(err) {
		t.Fatal(err)
	}
	s.Close()
	js := server.connect()
	s = opened(t, js, b)
	defer s.Close()
	if sent := js.Conn().Stats().OutMsgs; len(s.bad) != 300 || sent > 50 {
		t.Errorf("%d of 300 bad objects were read by %d messages", len(s.bad), sent)
	}
}
