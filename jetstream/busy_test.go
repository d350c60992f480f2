package jetstream

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// slow is a codec that takes its time.
type slow struct {
	objectsCodec
	each *atomic.Int64
}

func (c slow) Append(buf []byte, o object) ([]byte, error) {
	time.Sleep(time.Duration(c.each.Load()))
	return c.objectsCodec.Append(buf, o)
}

func (c slow) Decode(data []byte) (object, error) {
	time.Sleep(time.Duration(c.each.Load()))
	return c.objectsCodec.Decode(data)
}

// A feeder that loads or compares a bucket for longer than its lease is still the feeder.
func TestLeaseIsKeptByABusyFeeder(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	b := Bucket{Name: "b", Lease: 1200 * time.Millisecond}
	codec := slow{objects, new(atomic.Int64)}
	s, err := New[object](server.connect(), b, codec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []tarn.Change[object]
	for i := range 40 {
		all = append(all, change(tarn.Add, tarn.Key(fmt.Sprint("k", i)), version(i+1), ""))
	}
	commit(t, s, to("40", all...))
	for what, do := range map[string]func() error{
		"load": func() error { _, err := s.Load(t.Context()); return err },
		"compare": func() error {
			whole := to("41", all...)
			whole.Whole = true
			return s.Commit(t.Context(), whole)
		},
	} {
		codec.each.Store(int64(100 * time.Millisecond))
		done := make(chan error)
		go func() { done <- do() }()
		waiting := newSink(t, server.connect(), b)
		for busy := true; busy; {
			select {
			case err := <-done:
				if busy = false; err != nil {
					t.Errorf("%s: %v", what, err)
				}
			case <-time.After(50 * time.Millisecond):
				if _, err := waiting.Open(t.Context(), nil); !errors.Is(err, ErrFed) {
					t.Fatalf("%s: another feeder is told %v", what, err)
				}
			}
		}
	}
}
