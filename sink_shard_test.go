package tarn

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// narrowing is a source of a shard that becomes smaller: an object leaves it.
type narrowing struct {
	*remote
	shard *leavingShard
}

func (n narrowing) Shard() ShardReader { return n.shard }

// leavingShard has all objects until one leaves.
type leavingShard struct {
	changed func()
	left    atomic.Bool
}

func (s *leavingShard) Open(changed func()) { s.changed = changed }
func (s *leavingShard) Begin() (has func(Meta) bool, within bool) {
	left := s.left.Load()
	return func(m Meta) bool { return !left || m.Key != "moving" }, left
}
func (s *leavingShard) Taken()              {}
func (s *leavingShard) Close()              {}
func (s *leavingShard) Health() ShardHealth { return ShardHealth{Name: "0 of 1"} }

// Watch is refused until the object has left.
func (n narrowing) Watch(ctx context.Context, q WatchQuery) (Stream[*entry], error) {
	if !n.shard.left.Load() {
		return nil, Because(ReasonRefused, 0, errUnreachable)
	}
	return n.remote.Watch(ctx, q)
}

// A sink that is ahead of the copy still has an object that leaves the shard, although it has
// the version at which the object was written.
func TestSinkAheadLetsGoOfAnotherShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote("a", "b", "moving")
		disk, sink := loadedSink{fakeSink: newFakeSink(policy("disk"))}, listedSink{newFakeSink(policy("sink"))}
		life := attached(t, r, disk, sink)
		settle()
		disk.refuse = func(context.Context, Batch[*entry]) error { return errUnreachable }
		r.put("a", "") // 4
		settle()
		_ = life.stop()
		disk.allow()

		source := narrowing{r, &leavingShard{}}
		second, err := NewReplica(source, newPlainStore(), Options[*entry]{Sinks: []Sink[*entry]{disk, sink}, OnError: func(context.Context, error) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = second.Run(ctx) }()
		settle()
		source.shard.left.Store(true)
		source.shard.changed()
		settle()
		r.put("b", "") // 5
		settle()
		if second.Len() != 2 || len(disk.state()) != 2 || len(sink.state()) != 2 {
			t.Errorf("of 2 objects the copy has %d, the disk %d, and the sink that was ahead %v", second.Len(), len(disk.state()), sink.state())
		}
		cancel()
		<-second.Done()
	})
}
