package relay

import (
	"slices"
	"sync"

	"github.com/tarnproject/tarn/apiserver"
)

// recentChunks are blocks that were read recently. Callers that ask for a block while it
// is being read share the result. An error is not remembered: the next read may succeed.
type recentChunks struct {
	mu    sync.Mutex
	order []int
	by    map[int]*recentChunk
}

type recentChunk struct {
	once   sync.Once
	events []*apiserver.Event
	err    error
}

// mostRecent bounds how many blocks are held decoded.
const mostRecent = 8

func (r *recentChunks) get(first int, read func() ([]*apiserver.Event, error)) ([]*apiserver.Event, error) {
	r.mu.Lock()
	c := r.by[first]
	if c == nil {
		c = &recentChunk{}
		if r.by == nil {
			r.by = map[int]*recentChunk{}
		}
		r.by[first] = c
		if r.order = append(r.order, first); len(r.order) > mostRecent {
			delete(r.by, r.order[0])
			r.order = r.order[1:]
		}
	}
	r.mu.Unlock()
	c.once.Do(func() {
		if c.events, c.err = read(); c.err != nil {
			r.forget(first, c)
		}
	})
	return c.events, c.err
}

// forget removes a block, unless another one has replaced it.
func (r *recentChunks) forget(first int, c *recentChunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[first] == c {
		delete(r.by, first)
		r.order = slices.DeleteFunc(r.order, func(other int) bool { return other == first })
	}
}

func (r *recentChunks) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order, r.by = nil, nil
}
