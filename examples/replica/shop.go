package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tarnproject/tarn"
)

// Article is what the shop has on stock.
type Article struct {
	Name    string
	Pieces  int
	Version tarn.Version
}

// Shop is a remote collection of articles. It is all that Tarn has to know about
// your system: how to read the whole at a version, how to follow it from a
// version, and what an object's name and version are. A real one would call a
// server.
type Shop struct {
	mu      sync.Mutex
	stock   map[string]Article
	history []tarn.Event[Article] // the first brought version 1, and so on
	closed  error                 // why nobody is served, if so
	changed chan struct{}         // closed at the next change of any kind
}

// NewShop makes an empty shop.
func NewShop() *Shop {
	return &Shop{stock: map[string]Article{}, changed: make(chan struct{})}
}

// Stock sets how many pieces there are and returns the version of that write; no
// pieces take the article off the list.
func (s *Shop) Stock(name string, pieces int) tarn.Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	article := Article{name, pieces, version(len(s.history) + 1)}
	event := tarn.Event[Article]{Type: tarn.EventModified, Object: article}
	if _, known := s.stock[name]; !known {
		event.Type = tarn.EventAdded
	}
	s.stock[name] = article
	if pieces == 0 {
		event.Type = tarn.EventDeleted
		delete(s.stock, name)
	}
	s.history = append(s.history, event)
	s.wake()
	return article.Version
}

// Close stops serving, for a reason.
func (s *Shop) Close(why string) { s.serve(errors.New(why)) }

// Open serves again.
func (s *Shop) Open() { s.serve(nil) }

func (s *Shop) serve(closed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = closed
	s.wake()
}

func (s *Shop) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// refused tells the engine that asking again is safe.
func refused(err error) error { return tarn.Because(tarn.ReasonRefused, 0, err) }

func version(n int) tarn.Version { return tarn.Version(strconv.Itoa(n)) }

// List reads the whole collection in one page.
func (s *Shop) List(context.Context, tarn.ListQuery) (tarn.Page[Article], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return tarn.Page[Article]{}, refused(s.closed)
	}
	items := slices.Collect(maps.Values(s.stock))
	return tarn.Page[Article]{Items: items, Version: version(len(s.history))}, nil
}

// Watch follows the collection from a version.
func (s *Shop) Watch(_ context.Context, q tarn.WatchQuery) (tarn.Stream[Article], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil, refused(s.closed)
	}
	next, err := strconv.Atoi(string(q.From))
	return &stream{s, next}, err
}

// Describe reads an object's identity.
func (s *Shop) Describe(a Article) (tarn.Meta, error) {
	if a.Name == "" {
		return tarn.Meta{}, errors.New("an article without a name")
	}
	return tarn.Meta{Key: tarn.Key(a.Name), Version: a.Version}, nil
}

// stream is one watch.
type stream struct {
	shop *Shop
	next int
}

// Next waits for events and takes as many as fit.
func (w *stream) Next(ctx context.Context, buf []tarn.Event[Article]) (int, error) {
	for {
		w.shop.mu.Lock()
		n := copy(buf, w.shop.history[w.next:])
		closed, changed := w.shop.closed, w.shop.changed
		w.shop.mu.Unlock()
		w.next += n
		switch {
		case n > 0:
			return n, nil
		case closed != nil:
			return 0, refused(closed)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (w *stream) Close() {}
