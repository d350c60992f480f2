package tarn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// describe reads an object's identity; a panic of the source's code is an error.
func (r *Reflector[T]) describe(object T) (m Meta, err error) {
	defer recoverTo(&err, "describing the object")
	return r.source.Describe(object)
}

// convert turns an object of the source into the item to store. It describes the
// object again after the transform, which may change even the name. Version and uid
// stay those of the source.
//
// On failure the object is bad. convert still returns the meta as far as it could be
// read, because a bad object must neither look deleted nor hold the version back.
func (r *Reflector[T]) convert(object T) (Item[T], error) {
	m, err := r.describe(object)
	if err != nil {
		return Item[T]{Meta: m}, err
	}
	item, _, err := r.convertAs(m, object)
	return item, err
}

// named returns a bad object with the key of its last good state.
func (r *Reflector[T]) named(bad BadObject) BadObject {
	bad.Key = r.renames.of(bad.Key)
	return bad
}

// findRenamed asks for a read of the whole state if the object that was deleted may be in
// the store under another name, which an earlier process gave it.
func (r *Reflector[T]) findRenamed(key Key) {
	if !r.renames.partial || r.reader == nil {
		return
	}
	if _, found := r.reader.Get(key); !found {
		r.unreadable.record(r.opts.Clock.Now(), true)
	}
}

// convertAs is convert for an object that was already described. It also returns the
// meta of the transformed object.
func (r *Reflector[T]) convertAs(m Meta, object T) (item Item[T], kept Meta, err error) {
	if m.Version == "" {
		r.traits.unversioned = true
	}
	item = Item[T]{Meta: m, Object: object}
	if r.opts.Transform == nil {
		item.Object, err = freeze(r.guard, m.Key, object)
		return item, m, err
	}
	if item.Object, err = r.transform(object); err != nil {
		return Item[T]{Meta: m}, m, err
	}
	if kept, err = r.describe(item.Object); err != nil {
		return Item[T]{Meta: m}, kept, fmt.Errorf("after the transform: %w", err)
	}
	item.Key = kept.Key
	r.renames.record(m.Key, item.Key)
	r.shard.note(m, kept)
	item.Object, err = freeze(r.guard, item.Key, item.Object)
	return item, kept, err
}

func (r *Reflector[T]) transform(object T) (kept T, err error) {
	defer recoverTo(&err, "transforming the object")
	return r.opts.Transform(object)
}

// panicError is a panic of the caller's code. Its stack is in the first report, and is
// not kept with the object.
type panicError struct {
	doing string
	value any
	stack []byte
}

func (e *panicError) Error() string {
	s := fmt.Sprintf("panic while %s: %v", e.doing, e.value)
	if len(e.stack) > 0 {
		s += "\n" + string(e.stack)
	}
	return s
}

func withoutStack(err error) error {
	if p, ok := errors.AsType[*panicError](err); ok {
		return &panicError{doing: p.doing, value: p.value}
	}
	return err
}

// recoverTo turns a panic into an error.
func recoverTo(err *error, doing string) {
	if v := recover(); v != nil {
		*err = &panicError{doing, v, debug.Stack()}
	}
}

// reject records a bad object, and reports it if the error is new.
func (r *Reflector[T]) reject(ctx context.Context, bad BadObject) {
	r.onMissed(GapBad)
	if bad, news := r.monitor.bad.put(bad, false, r.opts.Clock.Now()); news {
		r.opts.OnBad(ctx, bad)
	}
}

// rejectSome reports the objects of an ObjectErrors and returns any other error.
func (r *Reflector[T]) rejectSome(ctx context.Context, err error) error {
	some, ok := errors.AsType[ObjectErrors](err)
	if !ok {
		return err
	}
	for i, b := range some {
		if bad, news := r.monitor.bad.put(b, true, r.opts.Clock.Now()); news && i < maxReports {
			r.opts.OnBad(ctx, bad)
		}
	}
	r.summarize(ctx, len(some))
	return nil
}

// maxReports is how many bad objects of one list or batch are reported one by one:
// a transform that fails for a million objects must not block the loop with a million
// reports.
const maxReports = 20

func (r *Reflector[T]) summarize(ctx context.Context, bad int) {
	if bad > maxReports {
		r.opts.OnBad(ctx, BadObject{Err: fmt.Errorf("%d more objects could not be taken; Health counts them", bad-maxReports)})
	}
}
