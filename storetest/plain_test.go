package storetest

import (
	"errors"
	"iter"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// plain is a store that keeps the contract, as simply as can be. The broken
// stores are made from it.
type plain struct {
	mu      sync.RWMutex
	objects map[tarn.Key]Object
	version tarn.Version
}

func newPlain() *plain { return &plain{objects: map[tarn.Key]Object{}} }

func (p *plain) Replace(items []tarn.Item[Object], at tarn.Position) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects = map[tarn.Key]Object{}
	for _, item := range items {
		p.objects[item.Key] = item.Object
	}
	p.version = at.Version
	return nil
}

func (p *plain) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range changes {
		p.change(c)
	}
	p.version = at.Version
	return nil
}

func (p *plain) change(c tarn.Change[Object]) {
	if c.Type == tarn.Delete {
		delete(p.objects, c.Key)
	} else {
		p.objects[c.Key] = c.Object
	}
}

func (p *plain) Get(key tarn.Key) (Object, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	o, ok := p.objects[key]
	return o, ok
}

func (p *plain) All() iter.Seq2[tarn.Key, Object] {
	return func(yield func(tarn.Key, Object) bool) {
		p.mu.RLock()
		all := maps.Clone(p.objects)
		p.mu.RUnlock()
		maps.All(all)(yield)
	}
}

func (p *plain) Len() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.objects)
}

func (p *plain) Version() tarn.Version {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.version
}

// step is for stores that do in several steps what must be one.
func (p *plain) step(do func()) {
	p.mu.Lock()
	do()
	p.mu.Unlock()
	runtime.Gosched()
}

type losesDeletes struct{ *plain }

func (s losesDeletes) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	for _, c := range changes {
		if c.Type != tarn.Delete {
			s.step(func() { s.change(c) })
		}
	}
	return s.plain.Apply(nil, at)
}

type replaceMerges struct{ *plain }

func (s replaceMerges) Replace(items []tarn.Item[Object], at tarn.Position) error {
	s.step(func() {
		for _, item := range items {
			s.objects[item.Key] = item.Object
		}
		s.version = at.Version
	})
	return nil
}

type replaceKeepsOld struct{ *plain }

func (s replaceKeepsOld) Replace(items []tarn.Item[Object], at tarn.Position) error {
	next := make([]tarn.Item[Object], len(items))
	for i, item := range items {
		next[i] = item
		if old, had := s.Get(item.Key); had {
			next[i].Object = old
		}
	}
	return s.plain.Replace(next, at)
}

type versionAhead struct{ *plain }

func (s versionAhead) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	s.step(func() { s.version = at.Version })
	return s.plain.Apply(changes, at)
}

func (s versionAhead) Replace(items []tarn.Item[Object], at tarn.Position) error {
	s.step(func() { s.version = at.Version })
	return s.plain.Replace(items, at)
}

type versionBehind struct{ *plain }

func (s versionBehind) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	if err := s.plain.Apply(changes, tarn.At(s.Version())); err != nil {
		return err
	}
	runtime.Gosched()
	return s.plain.Apply(nil, at)
}

type tornApply struct{ *plain }

func (s tornApply) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	for _, c := range changes {
		s.step(func() { s.change(c) })
	}
	return s.plain.Apply(nil, at)
}

type tornReplace struct{ *plain }

func (s tornReplace) Replace(items []tarn.Item[Object], at tarn.Position) error {
	s.step(func() { s.objects = map[tarn.Key]Object{} })
	return s.plain.Replace(items, at)
}

// keepsSlices keeps its arguments and builds its content when it is read.
type keepsSlices struct {
	*plain
	items   []tarn.Item[Object]
	changes []tarn.Change[Object]
}

func (s *keepsSlices) Replace(items []tarn.Item[Object], at tarn.Position) error {
	s.items, s.changes = items, nil
	return s.plain.Replace(items, at)
}

func (s *keepsSlices) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	s.changes = changes
	return s.plain.Apply(changes, at)
}

func (s *keepsSlices) Get(key tarn.Key) (Object, bool) {
	for _, c := range s.changes {
		if c.Key == key && c.Type != tarn.Delete {
			return c.Object, true
		}
	}
	for _, item := range s.items {
		if item.Key == key {
			return item.Object, true
		}
	}
	return Object{}, false
}

type allMixes struct{ *plain }

func (s allMixes) All() iter.Seq2[tarn.Key, Object] {
	return func(yield func(tarn.Key, Object) bool) {
		for key := range s.plain.All() {
			if o, ok := s.Get(key); ok && !yield(key, o) {
				return
			}
		}
	}
}

type allLocks struct{ *plain }

func (s allLocks) All() iter.Seq2[tarn.Key, Object] {
	return func(yield func(tarn.Key, Object) bool) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		maps.All(s.objects)(yield)
	}
}

type allOnce struct{ *plain }

func (s allOnce) All() iter.Seq2[tarn.Key, Object] {
	var used atomic.Bool
	return func(yield func(tarn.Key, Object) bool) {
		if used.CompareAndSwap(false, true) {
			s.plain.All()(yield)
		}
	}
}

type allRepeats struct{ *plain }

func (s allRepeats) All() iter.Seq2[tarn.Key, Object] {
	return func(yield func(tarn.Key, Object) bool) {
		for key, o := range s.plain.All() {
			for range 2 {
				if !yield(key, o) {
					return
				}
			}
		}
	}
}

type ignoresBookmarks struct{ *plain }

func (s ignoresBookmarks) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	if len(changes) == 0 {
		return nil
	}
	return s.plain.Apply(changes, at)
}

type bookmarkClears struct{ *plain }

func (s bookmarkClears) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	if len(changes) == 0 {
		return s.Replace(nil, at)
	}
	return s.plain.Apply(changes, at)
}

type deleteNeedsKey struct{ *plain }

func (s deleteNeedsKey) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	present := map[tarn.Key]bool{}
	for key := range s.All() {
		present[key] = true
	}
	for _, c := range changes {
		if c.Type == tarn.Delete && !present[c.Key] {
			return errors.New("no such key")
		}
		present[c.Key] = c.Type != tarn.Delete
	}
	return s.plain.Apply(changes, at)
}

// deletesLast sorts a batch by type.
type deletesLast struct{ *plain }

func (s deletesLast) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	var sorted []tarn.Change[Object]
	for _, deletes := range []bool{false, true} {
		for _, c := range changes {
			if (c.Type == tarn.Delete) == deletes {
				sorted = append(sorted, c)
			}
		}
	}
	return s.plain.Apply(sorted, at)
}

type trimsVersions struct{ *plain }

func (s trimsVersions) Version() tarn.Version {
	return tarn.Version(strings.TrimLeft(string(s.plain.Version()), "0"))
}

type onlyForward struct{ *plain }

func (s onlyForward) Replace(items []tarn.Item[Object], at tarn.Position) error {
	if at.Version.OlderThan(s.Version()) {
		return nil
	}
	return s.plain.Replace(items, at)
}

type foldsCase struct{ *plain }

func (s foldsCase) Replace(items []tarn.Item[Object], at tarn.Position) error {
	folded := make([]tarn.Item[Object], len(items))
	for i, item := range items {
		folded[i] = item
		folded[i].Key = tarn.Key(strings.ToLower(string(item.Key)))
	}
	return s.plain.Replace(folded, at)
}

type smallBatches struct{ *plain }

func (s smallBatches) Replace(items []tarn.Item[Object], at tarn.Position) error {
	return s.plain.Replace(items[:min(len(items), 999)], at)
}

type ghosts struct {
	*plain
	gone map[tarn.Key]Object
}

func (s ghosts) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	s.step(func() {
		for _, c := range changes {
			s.gone[c.Key] = c.Object
		}
	})
	return s.plain.Apply(changes, at)
}

func (s ghosts) Get(key tarn.Key) (Object, bool) {
	if o, ok := s.plain.Get(key); ok {
		return o, true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gone[key], false
}

// holdsGone and holdsFirst return wrong objects from Held.
type holdsGone struct {
	*plain
	last map[tarn.Key]Object
}

func (s holdsGone) Held(key tarn.Key) (any, bool) {
	if o, ok := s.Get(key); ok {
		s.last[key] = o
	}
	o, ok := s.last[key]
	return o, ok
}

type holdsFirst struct {
	*plain
	first map[tarn.Key]Object
}

func (s holdsFirst) Held(key tarn.Key) (any, bool) {
	o, ok := s.Get(key)
	if first, known := s.first[key]; known && ok {
		return first, true
	}
	s.first[key] = o
	return o, ok
}

type countsWrites struct {
	*plain
	n *atomic.Int64
}

func (s countsWrites) Apply(changes []tarn.Change[Object], at tarn.Position) error {
	s.n.Add(int64(len(changes)))
	return s.plain.Apply(changes, at)
}

func (s countsWrites) Replace(items []tarn.Item[Object], at tarn.Position) error {
	s.n.Store(int64(len(items)))
	return s.plain.Replace(items, at)
}

func (s countsWrites) Len() int { return int(s.n.Load()) }

type refuses struct{ *plain }

func (s refuses) Apply([]tarn.Change[Object], tarn.Position) error { return errors.New("read-only") }

type notEmpty struct{ *plain }

func newNotEmpty() notEmpty {
	p := newPlain()
	p.version = "0"
	return notEmpty{p}
}
