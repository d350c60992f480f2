package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// readPage reads a page from a response. If take is not nil, it is given the items while
// they arrive, except for those whose kind is known only at the end.
func (s *Source[T]) readPage(ctx context.Context, resp *response, held wire.Held, take func([]T)) (tarn.Page[T], error) {
	f := newBodyBuffer(resp.body, blockSize)
	defer f.close()
	g := &pageDecoder[T]{source: s, media: resp.media, filter: resp.filter, held: held, take: take, slots: make(chan struct{}, workers())}
	f.onLeave = g.handOver
	head, err := readList(f, resp.media, s.maxItem, g)
	g.finish()
	if err == nil && g.twice {
		err = f.malformed("the items are there twice")
	}
	if err != nil {
		return tarn.Page[T]{}, s.bodyFailed(ctx, "list", f, err)
	}
	if head.status != nil {
		return tarn.Page[T]{}, s.statusInstead(head.status)
	}
	s.noteEcho(resp, head.shard, g.foreign)
	g.deliver(0)
	page, silent := g.page()
	if err := s.codec.kinds.foreignList(head, silent); err != nil {
		return tarn.Page[T]{}, fmt.Errorf("the list of %s: %w", s.collection, err)
	}
	if silent && !g.typed() {
		g.fillKinds(page.Items, s.codec.kinds.itemsOf(head))
	}
	page.Version = tarn.Version(head.ResourceVersion)
	page.Continue = head.Continue
	return page, nil
}

// pageDecoder decodes the items of a page while more of them arrive.
//
// The items of one block are one batch, decoded by one goroutine. The slots bound
// the number of goroutines: the reader waits for a slot, so that memory in flight
// is bounded. Batches stay in the order of the list, and are delivered in that order.
type pageDecoder[T any] struct {
	source *Source[T]
	media  media
	// filter drops items of other shards, and foreign counts them.
	filter  *shardFilter
	foreign int
	held    wire.Held
	slots   chan struct{}
	group   sync.WaitGroup
	// take is given the items of batches that are decoded; nil leaves them to page.
	take func([]T)
	// delivered says that take was called, twice that the items started over after that.
	delivered, twice bool

	// block holds the items that are not handed over yet.
	block   *block
	items   []rawItem
	batches []*batch[T]
	// rest is what was left of batches whose items were delivered, and ready counts
	// the batches at the start that are to stay.
	rest  batch[T]
	ready int
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
	// done is closed when the items are decoded.
	done chan struct{}
}

func (g *pageDecoder[T]) item(f *bodyBuffer, n int) {
	if g.filter.foreign(g.media, f.window()[:n]) {
		f.take(n)
		g.foreign++
		return
	}
	if g.block == nil {
		g.block = f.block
		g.block.hold()
	}
	at := f.offset()
	g.items = append(g.items, rawItem{f.take(n), at})
}

func (g *pageDecoder[T]) foreignStart(start []byte) (seen int, foreign bool) {
	if seen, foreign = g.filter.foreignObject(start); foreign {
		g.foreign++
	}
	return seen, foreign
}

func (g *pageDecoder[T]) tooLong(start []byte, size, at int64) {
	if g.filter.foreign(g.media, start) {
		return
	}
	g.handOver()
	seen := excerptOf(g.media, start)
	err := fmt.Errorf("%w: at byte %d of the list of %s: the object has %d bytes, the limit is %d", tarn.ErrUndecodable, at, g.source.collection, size, g.source.maxItem)
	b := newBatch[T]()
	b.bad = []tarn.BadObject{seen.bad(err)}
	close(b.done)
	g.batches = append(g.batches, b)
}

func (g *pageDecoder[T]) forget() {
	g.finish()
	g.batches, g.rest, g.ready = nil, batch[T]{}, 0
	g.twice = g.delivered
}

// handOver gives the pending items to a worker.
func (g *pageDecoder[T]) handOver() {
	if g.block == nil {
		return
	}
	b, block, items := newBatch[T](), g.block, g.items
	g.batches = append(g.batches, b)
	g.block, g.items = nil, make([]rawItem, 0, len(items)+len(items)/4)
	g.slots <- struct{}{}
	g.group.Go(func() {
		b.decode(g, items)
		block.release()
		<-g.slots
	})
	g.deliver(2 * cap(g.slots))
}

// deliver gives the items of decoded batches to take. It waits for the first ones while
// there are more than so many.
func (g *pageDecoder[T]) deliver(most int) {
	if g.take == nil {
		return
	}
	for len(g.batches) > g.ready {
		b := g.batches[g.ready]
		if len(g.batches)-g.ready > most {
			<-b.done
		}
		select {
		case <-b.done:
		default:
			return
		}
		if b.silent && !g.typed() && g.source.codec.kinds.want.Kind == "" {
			g.ready++ // their kind follows from that of the list, which may come last
			continue
		}
		if b.silent && !g.typed() {
			g.fillKinds(b.items, g.source.codec.kinds.want)
		}
		g.rest.bad = append(g.rest.bad, b.bad...)
		g.rest.silent = g.rest.silent || b.silent
		g.batches = slices.Delete(g.batches, g.ready, g.ready+1)
		if len(b.items) > 0 {
			g.delivered = true
			g.take(b.items)
		}
	}
}

func (g *pageDecoder[T]) fillKinds(items []T, t runtime.TypeMeta) {
	for _, object := range items {
		fillKind(object, t)
	}
}

// finish decodes the last items and waits for the workers.
func (g *pageDecoder[T]) finish() {
	if g.block != nil {
		b := newBatch[T]()
		g.batches = append(g.batches, b)
		b.decode(g, g.items)
		g.block.release()
		g.block, g.items = nil, nil
	}
	g.group.Wait()
}

// page joins the batches that were not delivered. silent says that an item has no kind of its own.
func (g *pageDecoder[T]) page() (page tarn.Page[T], silent bool) {
	items := 0
	for _, b := range g.batches {
		items += len(b.items)
	}
	page.Items = make([]T, 0, items)
	page.Bad, silent = g.rest.bad, g.rest.silent
	for _, b := range g.batches {
		page.Items = append(page.Items, b.items...)
		page.Bad = append(page.Bad, b.bad...)
		silent = silent || b.silent
	}
	return page, silent
}

// typed says whether the Go type implies the kind.
func (g *pageDecoder[T]) typed() bool { return g.source.collection.Object != unstructuredType }

func newBatch[T any]() *batch[T] { return &batch[T]{done: make(chan struct{})} }

func (b *batch[T]) decode(g *pageDecoder[T], items []rawItem) {
	defer close(b.done)
	s, m := g.source, g.media
	b.items = make([]T, 0, len(items))
	began, bytes := time.Now(), 0
	defer func() { s.decoded.add(len(items), bytes, time.Since(began)) }()
	for _, item := range items {
		bytes += len(item.raw)
		object, silent, err := s.codec.object(m, item.raw, runtime.TypeMeta{}, stateInfo{wire.Added, g.held, true})
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
