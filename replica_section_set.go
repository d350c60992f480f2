package tarn

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// sectionSet holds the sections of a replica, which come and go.
type sectionSet[T any] struct {
	// single says that there is one section for good, which owns all keys; independent
	// is that of [Section].
	single, independent bool
	// ready is closed when the sections run.
	ready chan struct{}

	mu sync.Mutex
	// all is replaced by another slice when it changes, and never written to.
	all []*section[T]
	// removing are the sections that are being removed, and removed has the counts of those
	// that were: the counters of Health never decrease.
	removing []*section[T]
	removed  Health
	// undeleted are the sections that were removed and whose objects the store did not delete.
	undeleted []*section[T]
	// loading says that the replica loads its content, for the sections that it has.
	loading bool
	// start runs a section; nil while sections do not run.
	start func(*section[T])
	// confirm is [Kept.ConfirmSection] of what was loaded; nil if nothing was.
	confirm func(ctx context.Context, section string) error
}

// present returns the sections that the replica has now.
func (r *Replica[T]) present() []*section[T] {
	r.sections.mu.Lock()
	defer r.sections.mu.Unlock()
	return r.sections.all
}

// AddSection adds a section to a replica of [NewReplicaOf], before or while it runs. The
// other sections are not affected: a synced replica stays synced, and Health shows that
// the new section is not synced yet. If a section with the same name or keys is being
// removed, AddSection waits for that, so do not call it from the source or the error handler of
// that section.
func (r *Replica[T]) AddSection(s Section[T]) error {
	set := &r.sections
	if err := r.change(&s); err != nil {
		return err
	}
	defer set.mu.Unlock()
	known := []Section[T]{s}
	for _, p := range set.all {
		known = append(known, Section[T]{Name: p.name, Source: p.reflector.source, Prefix: p.prefix, Independent: p.independent})
	}
	if err := checkSections(known); err != nil {
		return fmt.Errorf("tarn: %q: %w", r.name(), err)
	}
	if s.Independent != set.independent {
		return fmt.Errorf("tarn: %q: section %q is independent, or not, and the others are the opposite: either all are or none", r.name(), s.Name)
	}
	if err := set.takeOver(s); err != nil {
		return fmt.Errorf("tarn: %q: %w", r.name(), err)
	}
	p := r.newSection(s)
	p.reflector.guard = r.fanout.guard
	p.state = newSectionState(p)
	r.connectSection(p)
	if set.confirm != nil {
		p.reflector.restart.confirm = func(ctx context.Context) error { return set.confirm(ctx, p.name) }
	}
	r.fanout.addSection(p.state)
	set.all = append(slices.Clip(set.all), p)
	if set.start != nil {
		set.start(p)
	}
	return nil
}

// RemoveSection removes a section with its objects, and returns when its source is no
// longer read. Subscribers and sinks get a Delete of each object, marked Removed. The
// other sections are not affected. A section of the same name can be added later.
//
// If the store does not delete the objects, RemoveSection fails. Then the source is no longer read,
// and the objects stay until RemoveSection is called again, or until a section of the same keys,
// which is added later, has been read.
func (r *Replica[T]) RemoveSection(name string) error {
	set := &r.sections
	if err := r.change(nil); err != nil {
		return err
	}
	p := set.beginRemoval(name)
	set.mu.Unlock()
	if p == nil {
		return fmt.Errorf("tarn: %q has no section %q", r.name(), name)
	}
	deleted := false
	defer func() { set.finishRemoval(p, deleted) }()
	if p.stop != nil {
		p.stop()
	}
	if err := r.fanout.removeSection(p.state); err != nil {
		return fmt.Errorf("tarn: %q: %w", r.name(), err)
	}
	deleted = true
	return nil
}

// beginRemoval takes a section that is to be removed, or whose removal is to be finished. It
// returns nil if there is no such section. mu is held.
func (set *sectionSet[T]) beginRemoval(name string) (p *section[T]) {
	named := func(p *section[T]) bool { return p.name == name }
	if i := slices.IndexFunc(set.all, named); i >= 0 {
		p = set.all[i]
		set.all = slices.Delete(slices.Clone(set.all), i, i+1)
	} else if i := slices.IndexFunc(set.undeleted, named); i >= 0 {
		p = set.undeleted[i]
		set.undeleted = slices.Delete(set.undeleted, i, i+1)
	} else {
		return nil
	}
	p.removed = make(chan struct{})
	set.removing = append(set.removing, p)
	return p
}

// takeOver lets a new section have the objects that the store did not delete: its first list says
// which of them there are. It fails if there are objects that would not be in the list. mu is held.
func (set *sectionSet[T]) takeOver(s Section[T]) error {
	for _, p := range set.undeleted {
		if !p.prefix.HasPrefix(s.Prefix) && (s.Prefix.HasPrefix(p.prefix) || p.name == s.Name) {
			return fmt.Errorf("objects of the removed section %q (%q) could not be deleted: call RemoveSection again before section %q is added", p.name, p.prefix, s.Name)
		}
	}
	set.undeleted = slices.DeleteFunc(set.undeleted, func(p *section[T]) bool {
		theirs := p.prefix.HasPrefix(s.Prefix)
		if theirs {
			set.removed.count(p.reflector.Health())
		}
		return theirs
	})
	return nil
}

// change locks the sections, to add one or to remove one (adding is nil), once that is
// possible. It fails for a replica whose sections do not change.
func (r *Replica[T]) change(adding *Section[T]) error {
	set := &r.sections
	if set.single {
		return fmt.Errorf("tarn: %q has one source for good: make a replica whose sections come and go with NewReplicaOf, of independent sections or of several", r.name())
	}
	for {
		set.mu.Lock()
		wait := set.busy(adding)
		if wait == nil {
			return nil
		}
		set.mu.Unlock()
		<-wait
	}
}

// busy returns what a change of the sections has to wait for: the replica is loading its
// content, or a section is being removed with the objects of the one that is to be added. It
// returns nil if there is nothing.
func (set *sectionSet[T]) busy(adding *Section[T]) <-chan struct{} {
	if set.loading {
		return set.ready
	}
	if adding == nil {
		return nil
	}
	for _, p := range set.removing {
		if p.name == adding.Name || p.prefix.HasPrefix(adding.Prefix) || adding.Prefix.HasPrefix(p.prefix) {
			return p.removed
		}
	}
	return nil
}

// finishRemoval keeps the counts of a section that has been removed, and lets another one
// take its name and its keys. A section whose objects were not deleted is kept, so that they can be.
func (set *sectionSet[T]) finishRemoval(p *section[T], deleted bool) {
	set.mu.Lock()
	defer set.mu.Unlock()
	set.removing = slices.DeleteFunc(set.removing, func(x *section[T]) bool { return x == p })
	if deleted {
		set.removed.count(p.reflector.Health())
	} else {
		set.undeleted = append(set.undeleted, p)
	}
	close(p.removed)
}

// health returns the Health of each section, and the counts of those that were removed.
func (set *sectionSet[T]) health() (each []Health, removed Health) {
	set.mu.Lock()
	defer set.mu.Unlock()
	for _, p := range set.all {
		h := p.reflector.Health()
		h.Section = p.name
		each = append(each, h)
	}
	removed = emptyCounts()
	removed.count(set.removed)
	for _, p := range slices.Concat(set.removing, set.undeleted) {
		removed.count(p.reflector.Health())
	}
	return each, removed
}

// load keeps the sections from being changed until they run.
func (set *sectionSet[T]) load() {
	set.mu.Lock()
	defer set.mu.Unlock()
	set.loading = true
}

// runSections runs the sections until ctx ends.
func (r *Replica[T]) runSections(ctx context.Context) error {
	if r.sections.single {
		return r.present()[0].reflector.Run(ctx)
	}
	defer close(r.ended)
	var running sync.WaitGroup
	r.sections.run(func(p *section[T]) {
		own, cancel := context.WithCancelCause(ctx)
		ended := make(chan struct{})
		p.stop = func() {
			cancel(ErrSectionRemoved)
			<-ended
		}
		running.Go(func() {
			defer close(ended)
			defer cancel(nil)
			_ = p.reflector.Run(own) // returns why the context ended
		})
	})
	<-ctx.Done()
	r.sections.run(nil)
	running.Wait()
	return context.Cause(ctx)
}

// run starts the present and later sections; with nil, later ones do not start.
func (set *sectionSet[T]) run(start func(*section[T])) {
	set.mu.Lock()
	defer set.mu.Unlock()
	set.start = start
	if start == nil {
		return
	}
	for _, p := range set.all {
		start(p)
	}
	set.loading = false
	close(set.ready)
}
