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

// readPage reads a page from a response.
func (s *Source[T]) readPage(ctx context.Context, resp *response, held wire.Held) (tarn.Page[T], error) {
	f := newBodyBuffer(resp.body, blockSize)
	defer f.close()
	g := &pageDecoder[T]{source: s, media: resp.media, held: held, slots: make(chan struct{}, workers())}
	f.onLeave = g.handOver
	head, err := readList(f, resp.media, s.maxItem, g)
	g.finish()
	if err != nil {
		return tarn.Page[T]{}, s.bodyFailed(ctx, "list", f, err)
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
			fillKind(object, t)
		}
	}
	page.Version = tarn.Version(head.ResourceVersion)
	page.Continue = head.Continue
	return page, nil
}

// pageDecoder decodes the items of a page while more of them arrive.
//
// The items of one block are one batch, decoded by one goroutine. The slots bound
// the number of goroutines: the reader waits for a slot, so that memory in flight
// is bounded. Batches stay in the order of the list.
type pageDecoder[T any] struct {
	source *Source[T]
	media  media
	held   wire.Held
	slots  chan struct{}
	group  sync.WaitGroup

	// block holds the items that are not handed over yet.
	block   *block
	items   []rawItem
	batches []*batch[T]
}

// rawItem is an item in its block, and its offset in the body.
type rawItem struct {
	raw []byte
	at  int64
}

// batch is the result of decoding some items.
type batch[T any] struct {
	items []T
	bad   []tarn.BadObject
	// silent says that an item has no kind of its own; in protobuf no item has.
	silent bool
}

func (g *pageDecoder[T]) item(f *bodyBuffer, n int) {
	if g.block == nil {
		g.block = f.block
		g.block.hold()
	}
	at := f.offset()
	g.items = append(g.items, rawItem{f.take(n), at})
}

func (g *pageDecoder[T]) tooLong(start []byte, size, at int64) {
	g.handOver()
	seen := excerptOf(g.media, start)
	err := fmt.Errorf("%w: at byte %d of the list of %s: the object has %d bytes, the limit is %d", tarn.ErrUndecodable, at, g.source.collection, size, g.source.maxItem)
	g.batches = append(g.batches, &batch[T]{bad: []tarn.BadObject{seen.bad(err)}})
}

func (g *pageDecoder[T]) forget() {
	g.finish()
	g.batches = nil
}

// handOver gives the pending items to a worker.
func (g *pageDecoder[T]) handOver() {
	if g.block == nil {
		return
	}
	b, block, items := &batch[T]{}, g.block, g.items
	g.batches = append(g.batches, b)
	g.block, g.items = nil, make([]rawItem, 0, len(items)+len(items)/4)
	g.slots <- struct{}{}
	g.group.Go(func() {
		b.decode(g, items)
		block.release()
		<-g.slots
	})
}

// finish decodes the last items and waits for the workers.
func (g *pageDecoder[T]) finish() {
	if g.block != nil {
		b := &batch[T]{}
		g.batches = append(g.batches, b)
		b.decode(g, g.items)
		g.block.release()
		g.block, g.items = nil, nil
	}
	g.group.Wait()
}

// page joins the batches. silent says that an item has no kind of its own.
func (g *pageDecoder[T]) page() (page tarn.Page[T], silent bool) {
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

// typed says whether the Go type implies the kind.
func (g *pageDecoder[T]) typed() bool { return g.source.collection.Object != unstructuredType }

func (b *batch[T]) decode(g *pageDecoder[T], items []rawItem) {
	s, m := g.source, g.media
	b.items = make([]T, 0, len(items))
	began, bytes := time.Now(), 0
	defer func() { s.decoded.add(len(items), bytes, time.Since(began)) }()
	for _, item := range items {
		bytes += len(item.raw)
		object, silent, err := s.codec.object(m, item.raw, runtime.TypeMeta{}, stateInfo{wire.Added, g.held})
		if err != nil {
			err = fmt.Errorf("at byte %d of the list of %s: %w", item.at, s.collection, err)
			seen := excerptOf(m, item.raw)
			b.bad = append(b.bad, seen.bad(err))
			b.silent = b.silent || seen.Kind == ""
			continue
		}
		b.silent = b.silent || silent
		b.items = append(b.items, object)
	}
}
