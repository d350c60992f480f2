package mirror

import (
	"context"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// intake counts what arrives of a table's first state. The copy takes that state
// in one piece, so that its size says nothing of how far it has come.
type intake []*counting

func (in intake) count() int {
	sum := int64(0)
	for _, c := range in {
		sum += c.arrived.Load()
	}
	return int(sum)
}

// counting is a source that counts the objects of the whole state being read.
type counting struct {
	tarn.Source[Object]
	arrived atomic.Int64
}

func (c *counting) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[Object], error) {
	if q.Continue == "" {
		c.arrived.Store(0)
	}
	page, err := c.Source.List(ctx, q)
	c.arrived.Add(int64(len(page.Items)))
	return page, err
}

func (c *counting) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[Object], error) {
	stream, err := c.Source.Watch(ctx, q)
	if err != nil || !q.Initial {
		return stream, err
	}
	c.arrived.Store(0)
	return &countingStream{Stream: stream, arrived: &c.arrived}, nil
}

type countingStream struct {
	tarn.Stream[Object]
	arrived *atomic.Int64
	// ended says that the initial events are over: the rest is not counted.
	ended bool
}

func (s *countingStream) Next(ctx context.Context, buf []tarn.Event[Object]) (int, error) {
	n, err := s.Stream.Next(ctx, buf)
	if s.ended {
		return n, err
	}
	for _, e := range buf[:n] {
		if s.ended = e.InitialEnd; s.ended {
			break
		}
		if e.Type == tarn.Added {
			s.arrived.Add(1)
		}
	}
	return n, err
}
