package jetstream

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tarnproject/tarn"
)

// part is what one atomic batch of a commit has, beside its checkpoint.
type part struct {
	messages []message
	// objects is how many of the messages are of objects, bytes about how long they are.
	objects, bytes int
	// end is how many messages of the commit are there after this part; last says that these
	// are all.
	end  int
	last bool
	// buffers are what the messages are made of.
	buffers []*[]byte
}

// fits says whether another message does.
func (p *part) fits(m message) bool {
	return len(p.messages) == 0 || len(p.messages) < maxBatch-1 && p.bytes+len(m.data) <= maxBatchBytes
}

func (p *part) free() {
	for _, b := range p.buffers {
		buffers.Put(b)
	}
}

// buffers are used by one part after the other: to allocate them costs more than to fill
// them.
var buffers = sync.Pool{New: func() any { return &[]byte{} }}

// writeParts writes a commit in as many atomic batches as it needs. The next one is encoded
// while one is written, so that neither waits for the other, and at most three are in memory.
func (s *Sink[T]) writeParts(ctx context.Context, w *writing[T]) error {
	parts := make(chan part, 1)
	stop := make(chan struct{})
	var failure error
	var encoding sync.WaitGroup
	encoding.Go(func() {
		defer close(parts)
		failure = s.encode(w, func(p part) bool {
			select {
			case parts <- p:
				return true
			case <-stop:
				return false
			}
		})
	})
	err := s.writeEach(ctx, w.last, parts)
	close(stop)
	encoding.Wait()
	if err == nil {
		err = failure
	}
	return err
}

// writeEach writes parts as they come. All but the last one end with a checkpoint that says
// how much of the commit is there.
func (s *Sink[T]) writeEach(ctx context.Context, last Checkpoint, parts <-chan part) error {
	before := s.at.Checkpoint
	for p := range parts {
		next := last
		next.Objects, next.Written = s.at.Objects+uint64(p.objects), 0
		if !p.last {
			next.Positions, next.LastContact, next.Gaps = before.Positions, before.LastContact, before.Gaps
			next.Incomplete, next.Written = true, p.end
		}
		if err := s.write(ctx, p.messages, next); err != nil {
			return err
		}
		p.free()
	}
	return nil
}

// chunk is how many changes are encoded at a time.
const chunk = 2 * fewObjects

// encode makes the parts of a commit until emit returns false.
func (s *Sink[T]) encode(w *writing[T], emit func(part) bool) error {
	p, made := part{}, 0
	add := func(m message, object bool) bool {
		if made++; made <= w.skip {
			return true
		}
		if !p.fits(m) {
			p.end = made - 1
			if !emit(p) {
				return false
			}
			p = part{}
		}
		p.messages, p.bytes = append(p.messages, m), p.bytes+len(m.data)
		if object {
			p.objects++
		}
		return true
	}
	for from := 0; from < len(w.changes); from += chunk {
		changes := w.changes[from:min(from+chunk, len(w.changes))]
		all, used := s.makeObjects(changes, w.epoch)
		for i, c := range changes {
			if err := all[i].err; err != nil {
				w.errors = append(w.errors, tarn.BadObject{Key: c.Key, Version: c.Version, Err: err})
				w.bad[c.Key] = c.Version
				continue
			}
			delete(w.bad, c.Key)
			if !add(all[i].message, true) {
				return nil
			}
		}
		p.buffers = append(p.buffers, used...) // an earlier part is written before this one
	}
	if err := s.markBad(w); err != nil {
		return err
	}
	for _, m := range w.marks {
		if !add(m, false) {
			return nil
		}
	}
	if made < w.skip {
		return fmt.Errorf("the checkpoint says that %d messages of a commit are there, and it has %d", w.skip, made)
	}
	p.end, p.last = made, true
	emit(p)
	return nil
}

// made holds the message of a change, or the error that prevented it.
type made struct {
	message
	err error
}

// fewObjects is how many objects are encoded by one goroutine at least.
const fewObjects = 64

// makeObjects makes the messages of changes, in buffers that the caller returns.
func (s *Sink[T]) makeObjects(changes []tarn.Change[T], epoch string) (all []made, used []*[]byte) {
	all = make([]made, len(changes))
	expected := int(s.objectSize.Load())
	s.onAllProcessors(len(changes), func(from, to int, buffer *[]byte) {
		*buffer = slices.Grow(*buffer, (to-from)*expected)
		for i := from; i < to; i++ {
			all[i].message, *buffer, all[i].err = s.object(*buffer, changes[i], epoch)
		}
	}, func(b *[]byte) { used = append(used, b) })
	bytes := 0
	for _, b := range used {
		bytes += len(*b)
	}
	s.objectSize.Store(int64(bytes/max(1, len(changes))) * 9 / 8)
	return all, used
}

// digested holds the digest of a change, or the error that prevented it.
type digested struct {
	digest string
	err    error
}

// digests are those of the changes of some keys.
func (s *Sink[T]) digests(changes []tarn.Change[T], epoch string, wanted func(tarn.Key) bool) []digested {
	all := make([]digested, len(changes))
	s.onAllProcessors(len(changes), func(from, to int, buffer *[]byte) {
		for i := from; i < to; i++ {
			if !wanted(changes[i].Key) {
				continue
			}
			m, after, err := s.object(*buffer, changes[i], epoch)
			all[i], *buffer = digested{m.header.Get(HeaderDigest), err}, after[:0]
		}
	}, func(b *[]byte) { buffers.Put(b) })
	return all
}

// onAllProcessors divides n objects among goroutines, with a buffer for each.
func (s *Sink[T]) onAllProcessors(n int, do func(from, to int, buffer *[]byte), done func(*[]byte)) {
	var working sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n/fewObjects+1)
	used := make([]*[]byte, workers)
	for w := range workers {
		used[w] = buffers.Get().(*[]byte)
		*used[w] = (*used[w])[:0]
		working.Go(func() { do(n*w/workers, n*(w+1)/workers, used[w]) })
	}
	working.Wait()
	for _, b := range used {
		done(b)
	}
}
