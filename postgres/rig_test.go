package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sinktest"
)

// opened is a sink of the suite's objects that is open until the test ends.
func opened(t *testing.T, db *DB) *Sink[sinktest.Object] {
	t.Helper()
	s := NewSink(db, "things", "all", plain{})
	_, err := s.Open(t.Context(), nil)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

type object = sinktest.Object

func thing(key tarn.Key, v tarn.Version, text string) tarn.Change[sinktest.Object] {
	return tarn.Change[sinktest.Object]{Type: tarn.Add, Key: key, Version: v, Object: sinktest.Object{Key: key, Version: v, UID: "uid-" + string(key), Text: text}}
}

func gone(key tarn.Key, v tarn.Version) tarn.Change[sinktest.Object] {
	c := thing(key, v, "last")
	c.Type = tarn.Delete
	return c
}

func batch(v tarn.Version, changes ...tarn.Change[sinktest.Object]) tarn.Batch[sinktest.Object] {
	return tarn.Batch[sinktest.Object]{Changes: changes, Positions: []tarn.Position{tarn.At(v)}, LastContact: time.Now()}
}

func whole(b tarn.Batch[sinktest.Object]) tarn.Batch[sinktest.Object] {
	b.Whole = true
	return b
}

// eventually waits for what the server's clock decides.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to pass: %s", what)
		}
	}
}

func isOwned(err error) bool {
	_, ok := errors.AsType[*OwnedError](err)
	return ok
}

// open opens a sink once more, and returns why not.
func open(ctx context.Context, s *Sink[sinktest.Object]) error {
	_, err := s.Open(ctx, nil)
	return err
}
