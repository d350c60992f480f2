package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
)

// NewSharedIndexInformerFromSource returns an informer of what a source holds,
// for sources that are no ListerWatcher: those of package kube, a replica of
// another process, a test's.
//
//   - Objects that are not of exampleObject's type, or kind if it is
//     unstructured, are reported and left out; a nil exampleObject lets all pass.
//   - Describe should name objects as [MetaNamespaceKeyFunc] does: listers and
//     Get look them up so.
//   - A transform is given a copy of each object, unless the source is a
//     [SharingSource]: the source may still need it.
//   - watchList lets the first state come as a stream; the source must know
//     [tarn.WatchQuery.Initial], or fail with [tarn.ReasonNoWatchList].
//   - Failures reach the watch error handler as they come from the source, with
//     two translations into the words that handlers look for: a very short watch
//     and a version that has expired.
//
// All else is as with [NewSharedIndexInformerWithOptions], metrics included.
func NewSharedIndexInformerFromSource(source tarn.Source[any], exampleObject runtime.Object, options SharedIndexInformerOptions, watchList bool) SharedIndexInformer {
	return newSharedInformer(exampleObject, options, func(s *informer) origin {
		if isNil(source) {
			source = noSource{s.description}
		}
		return s.supply(source, watchList)
	})
}

// supply makes a source the origin of an informer's objects.
func (s *informer) supply(source tarn.Source[any], watchList bool) origin {
	s.supplied = source
	meter := newReflectorMeter(s.name)
	return origin{source: supplied(source, s.example, meter), meter: meter, watchList: watchList}
}

func supplied(source tarn.Source[any], example runtime.Object, meter *reflectorMeter) *suppliedSource {
	_, bare := source.(*clientSource)
	return &suppliedSource{source, expectedTypeOf(example), meter, bare}
}

// suppliedSource is a source of somebody else's making: it is measured, and its
// objects are checked, as those of a ListerWatcher are.
type suppliedSource struct {
	tarn.Source[any]
	expected expectedType
	meter    *reflectorMeter
	// bare says that watch error handlers are given the errors of the API as they are, as from a
	// ListerWatcher.
	bare bool
}

// Unwrap lets the engine find what the source can do beyond the contract.
func (s *suppliedSource) Unwrap() tarn.Source[any] { return s.Source }

func (s *suppliedSource) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[any], error) {
	done := s.meter.list()
	page, err := s.Source.List(ctx, q)
	if err != nil {
		return page, err
	}
	var foreign []tarn.BadObject
	page.Items, foreign = s.own(page.Items)
	page.Bad = append(page.Bad, foreign...)
	done(len(page.Items))
	return page, nil
}

func (s *suppliedSource) StreamList(ctx context.Context, q tarn.ListQuery, take func([]any)) (tarn.Page[any], error) {
	done, given := s.meter.list(), 0
	var foreign []tarn.BadObject
	page, err := tarn.StreamList(ctx, s.Source, q, func(items []any) {
		items, bad := s.own(items)
		foreign = append(foreign, bad...)
		given += len(items)
		take(items)
	})
	if err != nil {
		return page, err
	}
	var bad []tarn.BadObject
	page.Items, bad = s.own(page.Items)
	page.Bad = slices.Concat(page.Bad, foreign, bad)
	done(given + len(page.Items))
	return page, nil
}

// own returns the items of the expected type, and the others as bad objects.
func (s *suppliedSource) own(items []any) (own []any, foreign []tarn.BadObject) {
	own = make([]any, 0, len(items))
	for _, item := range items {
		if err := s.expected.foreign(item); err != nil {
			foreign = append(foreign, s.bad(item, err))
		} else {
			own = append(own, item)
		}
	}
	return own, foreign
}

func (s *suppliedSource) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[any], error) {
	inner, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, s.watchError(err)
	}
	if isNil(inner) {
		return nil, fmt.Errorf("%T: the stream is nil: Watch must return a stream or an error", s.Source)
	}
	return &suppliedStream{Stream: inner, source: s, done: s.meter.watch()}, nil
}

// bad describes a bad object, by name if it has one.
func (s *suppliedSource) bad(object any, err error) (b tarn.BadObject) {
	b.Err = err
	if isNil(object) {
		return b
	}
	defer func() {
		_ = recover() // the source cannot describe what it did not expect; err says more
	}()
	if m, describeErr := s.Describe(object); describeErr == nil {
		b.Key, b.Version = m.Key, m.Version
	}
	return b
}

// watchError marks the error of a supplied source's watch, to distinguish it from
// what the engine added.
type watchError struct {
	error
	// shown is what watch error handlers are given.
	shown error
}

func (e watchError) Unwrap() error { return e.error }

func (s *suppliedSource) watchError(err error) error {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && s.bare {
		return watchError{err, status}
	}
	return watchError{err, err}
}

// suppliedStream is a stream of a [suppliedSource].
type suppliedStream struct {
	tarn.Stream[any]
	source *suppliedSource
	events int
	closed bool
	done   func(events int)
}

func (s *suppliedStream) Next(ctx context.Context, buf []tarn.Event[any]) (int, error) {
	n, err := s.Stream.Next(ctx, buf)
	if err != nil && err != io.EOF {
		err = s.source.watchError(err)
	}
	s.events += n
	for i := range buf[:n] {
		s.check(&buf[i])
	}
	return n, err
}

// check records in an event that its object does not belong here.
func (s *suppliedStream) check(e *tarn.Event[any]) {
	if e.Bad.Err != nil || e.Type == tarn.EventBookmark || e.Type == tarn.EventUndecodable {
		return
	}
	if err := s.source.expected.foreign(e.Object); err != nil {
		e.Bad = s.source.bad(e.Object, err)
		if e.Type == tarn.EventDeleted {
			e.Type = tarn.EventModified // what is gone is not one of ours
		}
	}
}

func (s *suppliedStream) Close() {
	s.Stream.Close()
	if !s.closed {
		s.closed = true
		s.done(s.events)
	}
}

// noSource replaces a nil source. The constructor cannot return an error, so every
// read does.
type noSource struct{ description string }

func (s noSource) fail() error {
	return fmt.Errorf("%s: the source is nil: there is nothing to list and watch", s.description)
}

func (s noSource) List(context.Context, tarn.ListQuery) (tarn.Page[any], error) {
	return tarn.Page[any]{}, s.fail()
}

func (s noSource) Watch(context.Context, tarn.WatchQuery) (tarn.Stream[any], error) {
	return nil, s.fail()
}

func (s noSource) Describe(any) (tarn.Meta, error) { return tarn.Meta{}, s.fail() }
