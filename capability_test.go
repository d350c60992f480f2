package tarn

import (
	"context"
	"testing"
)

// keeper is a store with abilities of its own.
type keeper struct {
	ReadStore[*entry]
	released int
}

func (k *keeper) Restore(context.Context) (Kept, error) { return Kept{}, nil }
func (k *keeper) Disk() SinkHealth                      { return SinkHealth{Note: "the inner one"} }
func (k *keeper) Release()                              { k.released++ }

// outer wraps a store, and has one of its abilities itself.
type outer struct{ ReadStore[*entry] }

func (o outer) Unwrap() ReadStore[*entry] { return o.ReadStore }
func (o outer) Disk() SinkHealth          { return SinkHealth{Note: "the outer one"} }

// A wrapper has the abilities of what it wraps without forwarding them, and its own come
// first; the replica finds them so too.
func TestAsLooksThroughWrappers(t *testing.T) {
	inner := &keeper{ReadStore: newPlainStore()}
	wrapped := outer{inner}
	if d, ok := As[Durable](wrapped); !ok || d != Durable(inner) {
		t.Errorf("Durable is %T (%v), want the inner store", d, ok)
	}
	if d, ok := As[DiskReporter](wrapped); !ok || d.Disk().Note != "the outer one" {
		t.Errorf("DiskReporter is %T (%v), want the wrapper", d, ok)
	}
	if _, ok := As[Resyncer](wrapped); ok {
		t.Error("a Resyncer was found, although no store is one")
	}
	r, err := NewReplica(newRemote(), wrapped, Options[*entry]{Name: "lakes"})
	if err != nil {
		t.Fatal(err)
	}
	if disk := r.Health().Disk; disk == nil || disk.Note != "the outer one" {
		t.Errorf("Health has the disk %+v", disk)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = r.Run(ctx) // returns why ctx ended
	if inner.released != 1 {
		t.Errorf("the inner store was released %d times, want once", inner.released)
	}
}
