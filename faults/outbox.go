package faults

import (
	"context"
	"time"

	"github.com/tarnproject/tarn"
)

// outbox holds the events that a reader has not yet been given, in order.
type outbox[T any] struct {
	parcels []parcel[T]
}

type parcel[T any] struct {
	event tarn.Event[T]
	// due is when it may be handed out, at the earliest.
	due time.Time
	// tied says that it must not be the last event that a reader gets: the next one
	// was to come before it, and a reader that continues from here would miss it.
	tied bool
}

func (o *outbox[T]) put(p parcel[T]) { o.parcels = append(o.parcels, p) }

// take hands out what is due, after waiting for the first of it. With nothing at
// hand it returns 0 at once.
func (o *outbox[T]) take(ctx context.Context, buf []tarn.Event[T]) (int, error) {
	if len(o.parcels) == 0 {
		return 0, nil
	}
	if wait := time.Until(o.parcels[0].due); wait > 0 {
		if err := sleep(ctx, wait); err != nil {
			return 0, err
		}
	}
	now := time.Now()
	n := 0
	for n < len(buf) && n < len(o.parcels) && !o.parcels[n].due.After(now) {
		n++
	}
	for n > 1 && o.parcels[n-1].tied {
		n--
	}
	for i, p := range o.parcels[:n] {
		buf[i] = p.event
	}
	clear(o.parcels[:n])
	if o.parcels = o.parcels[n:]; len(o.parcels) == 0 {
		o.parcels = nil
	}
	return n, nil
}
