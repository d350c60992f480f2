package relay

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/tarnproject/tarn/apiserver"
)

// pastListing is the content at the old version that was last asked for. Pages of one list
// ask for the same one, and reading it costs much more than holding it for a minute. One
// is read at a time, so that requests for many versions cost time and not memory.
type pastListing struct {
	turn chan struct{}

	mu      sync.Mutex
	of      pastKey
	objects []*apiserver.Object
	used    time.Time
}

// pastKey says which content it is: versions from before a rewind are other ones.
type pastKey struct {
	version int64
	rewinds int
}

// pastPatience is how long a content at an old version is held after it was last used.
const pastPatience = time.Minute

// get returns a content, and reads it if it is not held.
func (p *pastListing) get(ctx context.Context, of pastKey, read func() ([]*apiserver.Object, error)) ([]*apiserver.Object, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if objects, ok := p.held(of); ok {
		return objects, nil
	}
	p.clear() // before another one is read
	objects, err := read()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of, p.objects, p.used = of, objects, time.Now()
	return objects, nil
}

func (p *pastListing) held(of pastKey) ([]*apiserver.Object, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != of {
		return nil, false
	}
	p.used = time.Now()
	return p.objects, true
}

// age releases a content that nobody uses.
func (p *pastListing) age() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.used) > pastPatience {
		p.of, p.objects = pastKey{}, nil
	}
}

func (p *pastListing) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of, p.objects = pastKey{}, nil
}

// at returns the content at a version that only the journal still has. It undoes what
// happened between that version and a later content: the next one on disk, or the one that
// the caller has, of the place next, if that is nearer.
func (j *journal) at(ctx context.Context, version int64, objects []*apiserver.Object, next int) ([]*apiserver.Object, error) {
	place, err := j.since(version)
	if err != nil {
		return nil, err
	}
	for {
		c, ok := j.contentAfter(place)
		if !ok || c.place >= next {
			break
		}
		_, _, found, err := j.readContent(c.path, c.place)
		if err == nil {
			objects, next = found, c.place
			break
		}
		if !errors.Is(err, errBadChunk) && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		j.logger.Warn("A content on disk cannot be read; lists at old versions use a later one.", "file", c.path, "error", err)
		j.abandon(c)
	}
	before, err := j.undo(ctx, place, next)
	if err != nil {
		return nil, err
	}
	return with(objects, before), nil
}

// undo returns what objects were before the events between two places. It does not hold the
// blocks that it reads: there may be many.
func (j *journal) undo(ctx context.Context, from, to int) (priorObjects, error) {
	before := priorObjects{}
	for from < to {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		b, l, err := j.blockAt(from)
		if err != nil {
			return nil, err
		}
		events, err := j.readOnce(b, l)
		if err != nil {
			return nil, err
		}
		for _, e := range events[from-b.first : min(b.count, to-b.first)] {
			before.note(e)
		}
		from = b.first + b.count
	}
	return before, nil
}

// abandon removes a content that cannot be read.
func (j *journal) abandon(c contentFile) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, other := range j.contents {
		if other == c {
			j.contents = append(j.contents[:i:i], j.contents[i+1:]...)
			c.remove()
			return
		}
	}
}
