package faults

import (
	"context"
	"time"

	"github.com/tarnproject/tarn"
)

// outbox holds the events that are not yet delivered, in order.
type outbox[T any] struct {
	queue []queuedEvent[T]
}

type queuedEvent[T any] struct {
	event tarn.Event[T]
	// due is the earliest time of delivery.
	due time.Time
	// notLast says that it must not be the last event that a reader gets: the next
	// one has a lower version, and a reader that resumes from here would miss it.
	notLast bool
}

func (o *outbox[T]) put(p queuedEvent[T]) { o.queue = append(o.queue, p) }

// take waits for the first event to be due, and delivers all that are due. If the
// outbox is empty, it returns 0 at once.
func (o *outbox[T]) take(ctx context.Context, buf []tarn.Event[T]) (int, error) {
	if len(o.queue) == 0 {
		return 0, nil
	}
	if wait := time.Until(o.queue[0].due); wait > 0 {
		if err := sleep(ctx, wait); err != nil {
			return 0, err
		}
	}
	now := time.Now()
	n := 0
	for n < len(buf) && n < len(o.queue) && !o.queue[n].due.After(now) {
		n++
	}
	for n > 1 && o.queue[n-1].notLast {
		n--
	}
	for i, p := range o.queue[:n] {
		buf[i] = p.event
	}
	clear(o.queue[:n])
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue = nil
	}
	return n, nil
}
