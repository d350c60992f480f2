package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// largestBatch bounds how many changes a consumer takes under one lock of its
// store; the number is client-go's.
const largestBatch = 1000

// Pop waits for a change and gives it, as a [Deltas] of one, to process and to the
// caller. It fails with [ErrFIFOClosed] when the queue is closed and empty, else
// with what process returned; the change is gone from the queue either way.
func (f *RealFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.await(); err != nil {
		return nil, err
	}
	popped := Deltas(f.remove(1))
	return popped, f.consume(popped, func(isInInitialList bool) error {
		return process(popped, isInInitialList)
	})
}

// PopBatch waits for a change and takes as many with it as can be processed
// together: changes of different objects, none of them about the queue as a
// whole, and not some of the first content with some of what came later. One
// change alone goes to processSingle.
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.await(); err != nil {
		return err
	}
	popped := f.remove(f.batch())
	return f.consume(popped, func(isInInitialList bool) error {
		if len(popped) == 1 {
			return processSingle(Deltas(popped), isInInitialList)
		}
		return processBatch(popped, isInInitialList)
	})
}

// await returns when there is something in the queue.
func (f *RealFIFO) await() error {
	for len(f.items) == 0 {
		if f.closed {
			return ErrFIFOClosed
		}
		f.changed.Wait()
	}
	return nil
}

// batch gives how many changes at the head of the queue make a batch, at least
// one.
func (f *RealFIFO) batch() int {
	limit := min(len(f.items), largestBatch)
	if f.initial.left > 0 {
		limit = min(limit, f.initial.left)
	}
	keys := sets.New[string]()
	for n, delta := range f.items[:limit] {
		if !isAboutOneObject(delta.Type) {
			return max(n, 1)
		}
		key, err := f.key(delta.Object)
		switch {
		case err != nil:
			// Without a key it may be any object, so it ends the batch; but it is
			// part of it, as client-go has it.
			return n + 1
		case keys.Has(key):
			return n
		}
		keys.Insert(key)
	}
	return limit
}

func isAboutOneObject(what DeltaType) bool {
	switch what {
	case Added, Updated, Deleted, Replaced, Sync:
		return true
	}
	return false
}

// remove removes the first n changes of the queue. It clears them: the array of the
// slice lives on, and would keep the objects alive.
func (f *RealFIFO) remove(n int) []Delta {
	removed := append([]Delta(nil), f.items[:n]...)
	clear(f.items[:n])
	f.items = f.items[n:]
	f.metrics.queued(len(f.items))
	return removed
}

// consume calls the consumer and counts what it has processed. How much of that
// belongs to the first content is settled before: a Replace may come meanwhile.
//
// The lock is released during the call only while the queue is short. A consumer
// that falls behind takes its producer with it, which bounds the queue.
func (f *RealFIFO) consume(popped []Delta, process func(isInInitialList bool) error) error {
	isInInitialList := !f.initial.synced()
	defer f.initial.processed(f.initial.share(len(popped)))

	start, depth := time.Now(), len(f.items)
	defer func() {
		f.metrics.processed(time.Since(start).Seconds())
		warnIfSlow(f.logger, start, f.keyFunc, popped, depth)
	}()
	if f.freeInProcess && depth < 2*largestBatch {
		f.mu.Unlock()
		defer f.mu.Lock()
	}
	return process(isInInitialList)
}
