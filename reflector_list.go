package tarn

import (
	"context"
	"fmt"
)

// listVersion is the version to ask for. The first list accepts any version, later
// ones none older than the version reached, unless that has expired.
func (r *Reflector[T]) listVersion() Version {
	switch {
	case r.next.version >= consistent, r.fills():
		// A state that is filled in pieces must come in pages, and servers page
		// only consistent reads.
		return Latest
	case r.version == "":
		return Any
	default:
		return r.version
	}
}

// pageSize pages the reads that the source cannot serve from memory. A source can
// serve a list at a given version from memory, but not if it is paged.
func (r *Reflector[T]) pageSize(at Version) int64 {
	if n := r.opts.PageSize(); n > 0 {
		return n
	}
	if r.traits.pages || at == Latest || at == Any {
		return DefaultPageSize
	}
	return 0
}

// listState fetches the whole collection as a list.
func (r *Reflector[T]) listState(ctx context.Context) (*Pass[T], error) {
	at := r.listVersion()
	pass, paged, err := r.listAt(ctx, at)
	if reason := ReasonOf(err); reason == ReasonExpired || reason == ReasonTooNew {
		r.readNext(nextRead{version: consistent})
		at = Latest
		pass, paged, err = r.listAt(ctx, at)
	}
	if err == nil && r.suspiciouslyEmpty(pass) {
		at = Latest
		pass, paged, err = r.listAt(ctx, at)
	}
	if err == nil && !r.unordered() && pass.version.OlderThan(r.version) {
		// The answer is older than asked for. Only a consistent read shows
		// whether the source went back in time.
		if at != Latest {
			at = Latest
			pass, paged, err = r.listAt(ctx, at)
		}
		if err == nil && pass.version.OlderThan(r.version) {
			pass, paged, err = r.listRewound(ctx, pass)
		}
	}
	if err != nil {
		return nil, r.explain("list at", at, err)
	}
	if at == Any && paged {
		r.traits.pages = true
	}
	return pass, nil
}

// suspiciouslyEmpty reports whether a first answer may not be a list at all: it is empty
// and has no version, as if decoded from an empty JSON object. Subscribers would see an
// empty collection, so the reflector asks once more.
func (r *Reflector[T]) suspiciouslyEmpty(pass *Pass[T]) bool {
	return !r.synced && !r.opts.Unversioned && pass.version == "" && pass.state.empty()
}

// listRewound accepts a state that is older than the version reached. If the
// comparison relied on versions so far, it lists again and compares content.
func (r *Reflector[T]) listRewound(ctx context.Context, pass *Pass[T]) (*Pass[T], bool, error) {
	trusted := r.next.version < anyAfterRewind
	if trusted {
		r.rewind(ctx, pass.version)
	}
	pass.cause = r.next.cause
	if !trusted || r.reader == nil {
		return pass, false, nil
	}
	return r.listAt(ctx, Latest)
}

// listAt reads all pages at a version. When a page token expires midway, it reads
// the list again without pages.
func (r *Reflector[T]) listAt(ctx context.Context, at Version) (*Pass[T], bool, error) {
	pass := &Pass[T]{r: r, state: r.newRelisting(), cause: r.next.cause}
	q := ListQuery{AtLeast: at, Limit: r.pageSize(at), Afresh: r.next.afresh, Held: r.held()}
	paged := false
	for {
		page, err := r.listPage(ctx, q, pass.state)
		if err != nil {
			if q.Continue != "" && ReasonOf(err) == ReasonExpired {
				pass.state, pass.version = r.newRelisting(), ""
				q.Limit, q.Continue = 0, ""
				continue
			}
			return nil, paged, err
		}
		if page.Version == "" && pass.version != "" {
			return nil, paged, fmt.Errorf("%w: a page has no version, and the one before had", ErrNoList)
		}
		pass.version = page.Version
		for _, b := range page.Bad {
			pass.state.bad(ctx, b)
		}
		if page.Continue == "" {
			return pass, paged, nil
		}
		paged = true
		q.Continue = page.Continue
	}
}

// listPage reads a page into a state. The items of a [ListStreamer] are compared with the
// store while they arrive; if the page turns out to be no list, the state is useless.
func (r *Reflector[T]) listPage(ctx context.Context, q ListQuery, into *relisting[T]) (Page[T], error) {
	take := func(items []T) {
		for _, object := range items {
			into.put(ctx, object)
		}
	}
	page, err := r.listWithin(ctx, r.opts.ListTimeout, func(ctx context.Context) (Page[T], error) {
		return StreamList(ctx, r.source, q, take)
	})
	if err != nil {
		return page, err
	}
	if page.Version == "" && r.traits.versioned {
		return page, fmt.Errorf("%w: it has no version, and earlier ones had; the copy stays unchanged", ErrNoList)
	}
	take(page.Items)
	return page, nil
}
