package tarn

import (
	"context"
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
	if r.opts.Transform == nil {
		return Item[T]{Meta: m, Object: object}, nil
	}
	kept, err := r.transform(object)
	if err != nil {
		return Item[T]{Meta: m}, err
	}
	after, err := r.describe(kept)
	if err != nil {
		return Item[T]{Meta: m}, fmt.Errorf("after the transform: %w", err)
	}
	m.Key = after.Key
	return Item[T]{Meta: m, Object: kept}, nil
}

func (r *Reflector[T]) transform(object T) (kept T, err error) {
	defer recoverTo(&err, "transforming the object")
	return r.opts.Transform(object)
}

// recoverTo turns a panic into an error that carries the stack.
func recoverTo(err *error, doing string) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic while %s: %v\n%s", doing, v, debug.Stack())
	}
}

// reject reports a bad object.
func (r *Reflector[T]) reject(ctx context.Context, key Key, err error) {
	r.opts.OnBad(ctx, r.monitor.bad.put(key, err, r.opts.Clock.Now()))
}

// rejectSome reports what a store could not take and returns any other error.
func (r *Reflector[T]) rejectSome(ctx context.Context, err error) error {
	some, ok := err.(ObjectErrors)
	if !ok {
		return err
	}
	for _, b := range some {
		r.reject(ctx, b.Key, b.Err)
	}
	return nil
}
