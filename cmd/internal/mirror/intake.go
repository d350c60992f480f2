package mirror

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
)

// inputs are the sources of a table, which come and go with the clusters.
type inputs struct {
	mu  sync.Mutex
	all []input
}

// input is a source of a table, and the counter of its objects.
type input struct {
	cluster string
	source  *kube.Source[Object]
	counted *counting
}

// add adds a source of a cluster. It returns the source for the copy to read, which counts
// what given returns.
func (in *inputs) add(cluster string, source *kube.Source[Object], given tarn.Source[Object], hides bool) *counting {
	in.mu.Lock()
	defer in.mu.Unlock()
	counted := &counting{Source: given, hides: hides}
	in.all = append(in.all, input{cluster, source, counted})
	return counted
}

func (in *inputs) has(cluster string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.ContainsFunc(in.all, func(i input) bool { return i.cluster == cluster })
}

// named reports whether sources belong to clusters with names.
func (in *inputs) named() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.all) > 0 && in.all[0].cluster != ""
}

func (in *inputs) remove(cluster string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.all = slices.DeleteFunc(in.all, func(i input) bool { return i.cluster == cluster })
}

func (in *inputs) sources() (all []*kube.Source[Object]) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, i := range in.all {
		all = append(all, i.source)
	}
	return all
}

func (in *inputs) intake() (all intake) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, i := range in.all {
		all = append(all, i.counted)
	}
	return all
}

// intake counts the objects that arrive for a table's first state. The copy receives that
// state in one piece, so its size does not show the progress.
type intake []*counting

func (in intake) count() int {
	sum := int64(0)
	for _, c := range in {
		sum += c.arrived.Load()
	}
	return int(sum)
}

// lag is the longest time that an event has waited to be in the copy, since the last call.
func (in intake) lag() time.Duration {
	longest := time.Duration(0)
	for _, c := range in {
		longest = max(longest, c.taking.longest())
	}
	return longest
}

// counting is a source that counts the objects of the whole state being read, and measures
// the time of what is read after it.
type counting struct {
	tarn.Source[Object]
	arrived atomic.Int64
	taking  stopwatch
	// hides says that errors about objects must not quote them.
	hides bool
}

// redactedError hides the text of an error that may quote values of a Secret.
type redactedError struct{ err error }

func (u redactedError) Error() string {
	return "it cannot be read; the reason is not shown because it may quote values of the Secret: show Secrets to see it"
}

func (u redactedError) Unwrap() error { return u.err }

func (c *counting) redact(bad *tarn.BadObject) {
	if c.hides && bad.Err != nil {
		bad.Err = redactedError{bad.Err}
	}
}

func (c *counting) Unwrap() tarn.Source[Object] { return c.Source }

func (c *counting) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[Object], error) {
	if q.Continue == "" {
		c.arrived.Store(0)
	}
	page, err := c.Source.List(ctx, q)
	for i := range page.Bad {
		c.redact(&page.Bad[i])
	}
	c.arrived.Add(int64(len(page.Items)))
	return page, err
}

func (c *counting) StreamList(ctx context.Context, q tarn.ListQuery, take func([]Object)) (tarn.Page[Object], error) {
	if q.Continue == "" {
		c.arrived.Store(0)
	}
	page, err := tarn.StreamList(ctx, c.Source, q, func(items []Object) {
		c.arrived.Add(int64(len(items)))
		take(items)
	})
	for i := range page.Bad {
		c.redact(&page.Bad[i])
	}
	c.arrived.Add(int64(len(page.Items)))
	return page, err
}

func (c *counting) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[Object], error) {
	stream, err := c.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.Initial {
		c.arrived.Store(0)
	}
	return &countingStream{Stream: stream, source: c, ended: !q.Initial}, nil
}

type countingStream struct {
	tarn.Stream[Object]
	source *counting
	// ended says that the initial events are over: the rest is not counted.
	ended bool
}

func (s *countingStream) Next(ctx context.Context, buf []tarn.Event[Object]) (int, error) {
	// A caller that asks for more has processed everything before.
	s.source.taking.stop()
	n, err := s.Stream.Next(ctx, buf)
	for i := range buf[:n] {
		s.source.redact(&buf[i].Bad)
	}
	if s.ended {
		if n > 0 {
			s.source.taking.start()
		}
		return n, err
	}
	for _, e := range buf[:n] {
		if s.ended = e.InitialEnd; s.ended {
			break
		}
		if e.Type == tarn.EventAdded {
			s.source.arrived.Add(1)
		}
	}
	return n, err
}

func (s *countingStream) Close() {
	s.source.taking.stop()
	s.Stream.Close()
}
