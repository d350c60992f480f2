package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tarnproject/tarn"
)

// SourceOptions say what a [Source] cannot know by itself.
type SourceOptions[T any] struct {
	// Name distinguishes the source from others under the same plan; "source" if empty.
	Name string
	// Corrupt are ways to make a bad object out of a good one, which they must not
	// change: nil, empty, foreign, nameless. One of them is drawn each time;
	// without any there is no [Corrupt] fault.
	Corrupt []func(T) T
	// Oversize returns a large version of an object, which it must not change;
	// without it there is no [Oversize].
	Oversize func(T) T
}

// Source returns a source that behaves like inner, with the faults of the plan. It
// starts no goroutines and keeps every promise of [tarn.Source] except that its
// data is correct.
func Source[T any](inner tarn.Source[T], plan *Plan, opts SourceOptions[T]) tarn.Source[T] {
	opts.Name = cmp.Or(opts.Name, "source")
	return &source[T]{inner: inner, plan: plan, opts: opts}
}

type source[T any] struct {
	inner tarn.Source[T]
	plan  *Plan
	opts  SourceOptions[T]
}

// Unwrap returns the source without faults.
func (s *source[T]) Unwrap() tarn.Source[T] { return s.inner }

// Describe has no faults: it is part of the program, not of the connection.
func (s *source[T]) Describe(object T) (tarn.Meta, error) { return s.inner.Describe(object) }

// streamedAtOnce is how many items of a list are given to the caller at a time.
const streamedAtOnce = 3

// List is StreamList for a caller that takes nothing before the end.
func (s *source[T]) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[T], error) {
	return s.StreamList(ctx, q, nil)
}

// StreamList gives the first half of the items while they arrive, and leaves the others
// in the page, so that both ways are taken.
func (s *source[T]) StreamList(ctx context.Context, q tarn.ListQuery, take func([]T)) (tarn.Page[T], error) {
	r := s.plan.request(s.opts.Name, describeList(q))
	page, err := s.page(ctx, q, r)
	if err != nil {
		return page, err
	}
	cut, end := r.injector(CutList), len(page.Items)/2
	broken := cut.draw()
	if broken {
		end = cut.IntN(len(page.Items) + 1)
	}
	if take != nil {
		for items := range slices.Chunk(page.Items[:end], streamedAtOnce) {
			take(items)
		}
		page.Items = page.Items[end:]
	}
	if broken && cut.inject(fmt.Sprintf("after %d items", end)) {
		return tarn.Page[T]{}, failure(CutList, 0)
	}
	return page, nil
}

// page reads a page with the faults of a whole request and of its objects.
func (s *source[T]) page(ctx context.Context, q tarn.ListQuery, r *request) (tarn.Page[T], error) {
	if err := r.delay(ctx); err != nil {
		return tarn.Page[T]{}, err
	}
	if err := r.failAtOnce(listFaults(q)...); err != nil {
		return tarn.Page[T]{}, err
	}
	if r.injects(Hang) {
		return tarn.Page[T]{}, s.plan.hang(ctx)
	}
	page, err := s.inner.List(ctx, q)
	if err != nil {
		return page, err
	}
	if r.injects(NoVersion) {
		return tarn.Page[T]{}, nil
	}
	return newCorrupter(s, r).page(page), nil
}

func (s *source[T]) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[T], error) {
	r := s.plan.request(s.opts.Name, describeWatch(q))
	if err := r.delay(ctx); err != nil {
		return nil, err
	}
	if err := r.failAtOnce(watchFaults(q)...); err != nil {
		return nil, err
	}
	inner, err := s.inner.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return newStream(s, r, q, inner), nil
}

// failAtOnce decides whether the request fails at once: for one of the reasons
// that can hit any request, or one of those given.
func (r *request) failAtOnce(more ...Kind) error {
	if kind, after := r.failInBurst(Refuse, Busy, BusyFor, Internal, Fail); kind != "" {
		return failure(kind, after)
	}
	for _, kind := range more {
		if r.injects(kind) {
			return failure(kind, 0)
		}
	}
	return nil
}

// listFaults are those that fit a list: the version of a consistent read cannot
// be gone, nor a token that was not given.
func listFaults(q tarn.ListQuery) []Kind {
	switch {
	case q.Continue != "":
		return []Kind{ExpireToken, NoList}
	case named(q.AtLeast):
		return []Kind{Expire, TooNew, NoList}
	default:
		return []Kind{NoList}
	}
}

func watchFaults(q tarn.WatchQuery) []Kind {
	var fit []Kind
	if named(q.From) {
		fit = append(fit, Expire)
	}
	if q.Initial && named(q.From) {
		fit = append(fit, TooNew)
	}
	if q.Initial {
		fit = append(fit, NoWatchList)
	}
	return fit
}

// named says that a request is for one version.
func named(v tarn.Version) bool { return v != tarn.Latest && v != tarn.Any }

func describeList(q tarn.ListQuery) string {
	s := "list at " + describeVersion(q.AtLeast)
	if q.Continue != "" {
		s = "list on"
	}
	if q.Limit != 0 {
		s += fmt.Sprintf(", %d at most", q.Limit)
	}
	return s
}

func describeWatch(q tarn.WatchQuery) string {
	if q.Initial {
		return "stream at " + describeVersion(q.From)
	}
	return "watch from " + describeVersion(q.From)
}

func describeVersion(v tarn.Version) string {
	switch v {
	case tarn.Latest:
		return "latest"
	case tarn.Any:
		return "any"
	default:
		return string(v)
	}
}
