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

// take makes of an object what is kept: it is described, transformed and
// described again, since a transform may change anything, even the name. Version
// and uid stay those that the source gave.
//
// On failure the object is bad. The meta is still returned as far as it could be
// read, because a bad object must neither be taken for a deleted one nor hold
// the version back.
func (r *Reflector[T]) take(object T) (Item[T], error) {
	m, err := r.describe(object)
	if err != nil {
		return Item[T]{Meta: m}, err
	}
	item, _, err := r.takeAs(m, object)
	return item, err
}

// takeAs is take for an object that was described already. It also returns how what is
// kept describes itself.
func (r *Reflector[T]) takeAs(m Meta, object T) (item Item[T], kept Meta, err error) {
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
	item.Object, err = freeze(r.guard, item.Key, item.Object)
	return item, kept, err
}

func (r *Reflector[T]) transform(object T) (kept T, err error) {
	defer recoverTo(&err, "transforming the object")
	return r.opts.Transform(object)
}

// panicError is a panic of the caller's code. The stack is told once, when the
// object is reported, and not kept with the object.
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

// reject reports a bad object, unless nothing is new about it.
func (r *Reflector[T]) reject(ctx context.Context, bad BadObject) {
	if bad, news := r.monitor.bad.put(bad, false, r.opts.Clock.Now()); news {
		r.opts.OnBad(ctx, bad)
	}
}

// rejectSome reports what a store took only in part and returns any other error.
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

// maxReports is how many bad objects of one list or batch are reported one by
// one: a transform that fails for all of a million objects must not hold
// everything up with a million reports.
const maxReports = 20

func (r *Reflector[T]) summarize(ctx context.Context, bad int) {
	if bad > maxReports {
		r.opts.OnBad(ctx, BadObject{Err: fmt.Errorf("%d more objects could not be taken; Health counts them", bad-maxReports)})
	}
}
