package jetstream

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

type connection = jetstream.JetStream

// origin is a source in memory that remembers all its events.
type origin struct {
	mu      sync.Mutex
	version int
	objects map[tarn.Key]object
	log     []tarn.Event[object]
	// changed is closed with every change.
	changed chan struct{}
}

func newOrigin() *origin {
	return &origin{version: 1, objects: map[tarn.Key]object{}, changed: make(chan struct{})}
}

func version(n int) tarn.Version { return tarn.Version(fmt.Sprint(n)) }

func (o *origin) at() tarn.Version {
	o.mu.Lock()
	defer o.mu.Unlock()
	return version(o.version)
}

func (o *origin) content() map[tarn.Key]object {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.objects)
}

// change writes, or deletes, one of twenty keys.
func (o *origin) change(random *rand.Rand) {
	key := tarn.Key(fmt.Sprintf("ns-%d/%d", random.IntN(2), random.IntN(10)))
	o.mu.Lock()
	_, there := o.objects[key]
	o.mu.Unlock()
	if there && random.IntN(4) == 0 {
		o.remove(key)
	} else {
		o.put(key, fmt.Sprint(random.IntN(1000)))
	}
}

func (o *origin) put(key tarn.Key, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version++
	before, there := o.objects[key]
	next := object{Key: key, Version: version(o.version), UID: before.UID, Text: text}
	kind := tarn.EventModified
	if !there {
		kind, next.UID = tarn.EventAdded, fmt.Sprint("uid ", o.version)
	}
	o.objects[key] = next
	o.tell(tarn.Event[object]{Type: kind, Object: next})
}

func (o *origin) remove(key tarn.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version++
	last := o.objects[key]
	delete(o.objects, key)
	last.Version = version(o.version)
	o.tell(tarn.Event[object]{Type: tarn.EventDeleted, Object: last})
}

// tell appends an event, which is that of the version. mu is held.
func (o *origin) tell(e tarn.Event[object]) {
	o.log = append(o.log, e)
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *origin) Describe(x object) (tarn.Meta, error) { return objects.Describe(x) }

func (o *origin) List(context.Context, tarn.ListQuery) (tarn.Page[object], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return tarn.Page[object]{Items: slices.Collect(maps.Values(o.objects)), Version: version(o.version)}, nil
}

func (o *origin) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[object], error) {
	if q.Initial {
		return nil, tarn.Because(tarn.ReasonNoWatchList, 0, io.ErrUnexpectedEOF)
	}
	var from int
	if _, err := fmt.Sscan(string(q.From), &from); err != nil {
		return nil, err
	}
	return &originStream{o, from - 1}, nil
}

type originStream struct {
	o    *origin
	next int
}

func (s *originStream) Next(ctx context.Context, buf []tarn.Event[object]) (int, error) {
	for {
		s.o.mu.Lock()
		n, changed := copy(buf, s.o.log[min(s.next, len(s.o.log)):]), s.o.changed
		s.o.mu.Unlock()
		if s.next += n; n > 0 {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (s *originStream) Close() {}
