package jetstream

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tarnproject/tarn"
)

// part is an atomic batch of a commit, without its checkpoint, or a piece of a chain.
type part struct {
	messages []message
	// objects is how many of the messages are of objects, bytes about how long they are.
	objects, bytes int
	// last says that the commit ends with it.
	last bool
	// spaces are what the messages are made of.
	spaces []*space
}

// fits says whether another message does.
func (p *part) fits(m message, size int) bool {
	return len(p.messages) == 0 || len(p.messages) < size && p.bytes+len(m.data) <= maxBatchBytes
}

func (p *part) free() {
	for _, b := range p.spaces {
		b.free()
	}
}

// writeParts writes a commit. The next part is encoded while one is written, so that neither
// waits for the other, and at most three are in memory.
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
	err := s.writeEach(ctx, w, parts)
	close(stop)
	encoding.Wait()
	if err == nil {
		err = failure
	}
	return err
}

// writeEach writes parts as they come: one as an atomic batch, several as a chain.
func (s *Sink[T]) writeEach(ctx context.Context, w *writing[T], parts <-chan part) error {
	first, any := <-parts
	switch {
	case !any:
		return nil // it could not be encoded
	case first.last || s.batchesOnly:
		return s.writeBatches(ctx, w, first, parts)
	}
	err := s.writeChain(ctx, w, first, parts)
	_, s.batchesOnly = errors.AsType[serverError](err)
	return err
}

// writeBatches writes each part as an atomic batch.
func (s *Sink[T]) writeBatches(ctx context.Context, w *writing[T], first part, others <-chan part) error {
	for p, more := first, true; more; p, more = <-others {
		if err := s.write(ctx, p.messages, s.after(w, p, s.at.Objects)); err != nil {
			return err
		}
		p.free()
	}
	s.batchesOnly = false
	return nil
}

// after is the checkpoint after a part. Before the commit's end it has the positions that were
// there before.
func (s *Sink[T]) after(w *writing[T], p part, objects uint64) Checkpoint {
	next := w.last
	next.Objects = objects + uint64(p.objects)
	if !p.last {
		next.Positions, next.LastContact, next.Gaps, next.Incomplete = s.at.Positions, s.at.LastContact, s.at.Gaps, true
	}
	return next
}

// partSize is how many messages a part has. Those of a chain are small, so that what was
// encoded is sent while the processor still has it in its caches.
func (s *Sink[T]) partSize(w *writing[T]) int {
	size := s.batchSize - 1 // and the checkpoint
	if len(w.changes) > size && !s.batchesOnly {
		size = min(size, chunk)
	}
	return size
}

// chunk is how many changes are encoded at a time.
const chunk = 2 * fewObjects

// encode makes the parts of a commit until emit returns false.
func (s *Sink[T]) encode(w *writing[T], emit func(part) bool) error {
	encoders := newEncoders(s.codec, len(w.changes))
	defer encoders.close()
	p, size := part{}, s.partSize(w)
	add := func(m message, object bool) bool {
		if !p.fits(m, size) {
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
		all, used := s.makeObjects(encoders, changes, w.epoch)
		for i, c := range changes {
			if all[i].err != nil && c.Type == tarn.Delete {
				delete(w.bad, c.Key) // the bucket cannot have had it
				continue
			}
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
		p.spaces = append(p.spaces, used...) // an earlier part is written before this one
	}
	if err := s.markBad(w); err != nil {
		return err
	}
	for _, m := range w.marks {
		if !add(m, false) {
			return nil
		}
	}
	p.last = true
	emit(p)
	return nil
}

// made holds the message of a change, or the error that prevented it.
type made struct {
	message
	err error
}

// makeObjects makes the messages of changes, in spaces that the caller frees.
func (s *Sink[T]) makeObjects(by encoders[T], changes []tarn.Change[T], epoch string) ([]made, []*space) {
	all := make([]made, len(changes))
	expected := int(s.objectSize.Load())
	used := by.onAll(len(changes), func(from, to int, in *writer[T]) {
		in.data, in.fields = slices.Grow(in.data, (to-from)*expected), slices.Grow(in.fields, (to-from)*usualHeaders)
		for i := from; i < to; i++ {
			all[i].message, all[i].err = s.object(in, changes[i], epoch)
		}
	})
	bytes := 0
	for _, u := range used {
		bytes += len(u.data)
	}
	s.objectSize.Store(int64(bytes/max(1, len(changes))) * 9 / 8)
	return all, used
}

// usualHeaders is how many headers a message of an object has.
const usualHeaders = 5

// digested holds the digest of a change, or the error that prevented it.
type digested struct {
	digest string
	err    error
}

// digests are those of the changes of some keys.
func (s *Sink[T]) digests(changes []tarn.Change[T], epoch string, wanted func(tarn.Key) bool) []digested {
	all := make([]digested, len(changes))
	encoders := newEncoders(s.codec, len(changes))
	defer encoders.close()
	used := encoders.onAll(len(changes), func(from, to int, in *writer[T]) {
		for i := from; i < to; i++ {
			if !wanted(changes[i].Key) {
				continue
			}
			m, err := s.object(in, changes[i], epoch)
			all[i] = digested{m.header.get(HeaderDigest), err}
			in.data, in.fields = in.data[:0], in.fields[:0]
		}
	})
	for _, u := range used {
		u.free()
	}
	return all
}
