package sinktest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
)

// disk is what outlives a process.
type disk struct {
	objects   map[tarn.Key]Object
	positions []tarn.Position
	gaps      []tarn.Gap
	contact   time.Time
}

// model is a sink that keeps the contract, as simply as can be. The broken sinks are made
// from it by a fault.
type model struct {
	disk  *disk
	fault fault
}

// fault changes what a sink does. Each function may be nil.
type fault struct {
	// open changes what Open returns, batch what is committed.
	open  func(*disk, tarn.Kept) tarn.Kept
	batch func(*disk, tarn.Batch[Object]) tarn.Batch[Object]
	// after is called when a commit has taken effect.
	after func(*disk, tarn.Batch[Object]) error
	// ended is called instead of a commit whose context has ended.
	ended func(*disk, tarn.Batch[Object])
	// held and load change what is returned.
	held func(tarn.Meta) (tarn.Meta, bool)
	load func([]tarn.Change[Object]) []tarn.Change[Object]
}

var (
	_ tarn.Restorer[Object] = (*model)(nil)
	_ tarn.SinkLister       = (*model)(nil)
)

func subject(f fault) Subject {
	d := &disk{objects: map[tarn.Key]Object{}}
	return Subject{
		Open:    func() tarn.Sink[Object] { return &model{d, f} },
		Content: func() (map[tarn.Key]Object, error) { return d.objects, nil },
		Gaps:    func() ([]tarn.Gap, error) { return d.gaps, nil },
	}
}

func (m *model) Policy() tarn.SinkPolicy[Object] {
	return tarn.SinkPolicy[Object]{Name: "model", EveryState: true}
}

func (m *model) Open(context.Context, func() error) (tarn.Kept, error) {
	kept := tarn.Kept{Positions: slices.Clone(m.disk.positions), LastContact: m.disk.contact}
	if m.fault.open != nil {
		kept = m.fault.open(m.disk, kept)
	}
	return kept, nil
}

func (m *model) Commit(ctx context.Context, b tarn.Batch[Object]) error {
	if m.fault.batch != nil {
		b = m.fault.batch(m.disk, b)
	}
	if err := ctx.Err(); err != nil {
		if m.fault.ended != nil {
			m.fault.ended(m.disk, b)
		}
		return err
	}
	m.disk.take(b)
	if m.fault.after != nil {
		return m.fault.after(m.disk, b)
	}
	return nil
}

func (d *disk) take(b tarn.Batch[Object]) {
	if b.Whole {
		clear(d.objects)
	}
	for _, c := range b.Changes {
		if c.Type == tarn.Delete {
			delete(d.objects, c.Key)
		} else {
			d.objects[c.Key] = c.Object
		}
	}
	d.positions, d.contact = slices.Clone(b.Positions), b.LastContact
	d.gaps = append(d.gaps, b.Gaps...)
}

func (m *model) Close() {}

func (m *model) Held(context.Context) iter.Seq2[tarn.Meta, error] {
	return func(yield func(tarn.Meta, error) bool) {
		for _, o := range m.disk.objects {
			meta, ok := tarn.Meta{Key: o.Key, Version: o.Version, UID: o.UID}, true
			if m.fault.held != nil {
				meta, ok = m.fault.held(meta)
			}
			if ok && !yield(meta, nil) {
				return
			}
		}
	}
}

func (m *model) Load(context.Context) ([]tarn.Change[Object], error) {
	var all []tarn.Change[Object]
	for _, key := range slices.Sorted(maps.Keys(m.disk.objects)) {
		o := m.disk.objects[key]
		all = append(all, tarn.Change[Object]{Type: tarn.Add, Key: key, Object: o, Version: o.Version})
	}
	if m.fault.load != nil {
		all = m.fault.load(all)
	}
	return all, nil
}
