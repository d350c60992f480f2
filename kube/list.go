package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// readPage makes a page of a response.
func (s *Source[T]) readPage(ctx context.Context, resp *response, held wire.Held) (tarn.Page[T], error) {
	f := newFeed(resp.body, blockSize)
	defer f.close()
	g := &gathering[T]{source: s, media: resp.media, held: held, slots: make(chan struct{}, workers())}
	f.onLeave = g.handOver
	head, err := readList(f, resp.media, s.maxItem, g)
	g.finish()
	if err != nil {
		return tarn.Page[T]{}, s.brokeOff(ctx, "list", f, err)
	}
	if head.status != nil {
		return tarn.Page[T]{}, s.statusInstead(head.status)
	}
	page, silent := g.page()
	if err := s.codec.kinds.foreignList(head, silent); err != nil {
		return tarn.Page[T]{}, fmt.Errorf("the list of %s: %w", s.collection, err)
	}
	if silent && !g.typed() {
		t := s.codec.kinds.itemsOf(head)
		for _, object := range page.Items {
			name(object, t)
		}
	}
	page.Version = tarn.Version(head.ResourceVersion)
	page.Continue = head.Continue
	return page, nil
}

// gathering decodes the items of a page while more of them arrive.
//
// The items of one block are one batch, decoded by one goroutine; there are as
// many at a time as there are slots, and the reader waits for one, so that memory
// in flight is bounded. Each batch keeps its place, and with it the order.
type gathering[T any] struct {
	source *Source[T]
	media  media
	held   wire.Held
	slots  chan struct{}
	group  sync.WaitGroup

	// block is that of the items cut so far and not yet handed over.
	block   *block
	items   []cut
	batches []*batch[T]
}

// cut is an item in its block, and its offset in the body.
type cut struct {
	raw []byte
	at  int64
}

// batch is what came of some items.
type batch[T any] struct {
	items []T
	bad   []tarn.BadObject
	// silent says that there was an item which did not say its kind, as none does
	// in protobuf.
	silent bool
}

func (g *gathering[T]) item(f *feed, n int) {
	if g.block == nil {
		g.block = f.block
		g.block.hold()
	}
	at := f.offset()
	g.items = append(g.items, cut{f.take(n), at})
}

func (g *gathering[T]) tooLong(start []byte, size, at int64) {
	g.handOver()
	seen := glimpseOf(g.media, start)
	err := fmt.Errorf("%w: at byte %d of the list of %s: the object has %d bytes, and %d are the limit", tarn.ErrUndecodable, at, g.source.collection, size, g.source.maxItem)
	g.batches = append(g.batches, &batch[T]{bad: []tarn.BadObject{seen.bad(err)}})
}

func (g *gathering[T]) forget() {
	g.finish()
	g.batches = nil
}

// handOver gives the items cut so far to a worker.
func (g *gathering[T]) handOver() {
	if g.block == nil {
		return
	}
	b, block, items := &batch[T]{}, g.block, g.items
	g.batches = append(g.batches, b)
	g.block, g.items = nil, make([]cut, 0, len(items)+len(items)/4)
	g.slots <- struct{}{}
	g.group.Go(func() {
		b.decode(g, items)
		block.release()
		<-g.slots
	})
}

// finish decodes the last items here and waits for the workers.
func (g *gathering[T]) finish() {
	if g.block != nil {
		b := &batch[T]{}
		g.batches = append(g.batches, b)
		b.decode(g, g.items)
		g.block.release()
		g.block, g.items = nil, nil
	}
	g.group.Wait()
}

// page puts the batches together and says whether there was an item that did not
// say its kind.
func (g *gathering[T]) page() (page tarn.Page[T], silent bool) {
	items := 0
	for _, b := range g.batches {
		items += len(b.items)
	}
	page.Items = make([]T, 0, items)
	for _, b := range g.batches {
		page.Items = append(page.Items, b.items...)
		page.Bad = append(page.Bad, b.bad...)
		silent = silent || b.silent
	}
	return page, silent
}

// typed says whether the objects' type tells their kind.
func (g *gathering[T]) typed() bool { return g.source.collection.Object != unstructuredType }

func (b *batch[T]) decode(g *gathering[T], items []cut) {
	s, m := g.source, g.media
	b.items = make([]T, 0, len(items))
	began, bytes := time.Now(), 0
	defer func() { s.decoded.add(len(items), bytes, time.Since(began)) }()
	for _, item := range items {
		bytes += len(item.raw)
		object, silent, err := s.codec.object(m, item.raw, runtime.TypeMeta{}, life{wire.Added, g.held})
		if err != nil {
			err = fmt.Errorf("at byte %d of the list of %s: %w", item.at, s.collection, err)
			seen := glimpseOf(m, item.raw)
			b.bad = append(b.bad, seen.bad(err))
			b.silent = b.silent || seen.Kind == ""
			continue
		}
		b.silent = b.silent || silent
		b.items = append(b.items, object)
	}
}
