package share

import (
	"runtime"
	"weak"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
)

// idleWorkers are workers that wait for an object. They have learned what
// repeats, and hold some parts strongly, so they are kept while there is work
// and dropped after a garbage collection without any.
//
// Why not a sync.Pool: it keeps one for each processor, and a goroutine that moves
// to another processor starts to learn again.
type idleWorkers struct {
	list    []*worker
	used    bool // since the last garbage collection
	watched bool // releaseIdle runs after the next garbage collection
}

func (s *Sharer) worker() *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.idle.list) - 1
	if last < 0 {
		return &worker{sharer: s}
	}
	w := s.idle.list[last]
	s.idle.list = s.idle.list[:last]
	return w
}

func (s *Sharer) release(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle.list) < runtime.GOMAXPROCS(0) {
		s.idle.list = append(s.idle.list, w)
	}
	s.idle.used = true
	if !s.idle.watched {
		s.idle.watched = true
		releaseIdle(weak.Make(s))
	}
}

// releaseIdle drops a sharer's workers after the first garbage collection
// during which they had no work.
func releaseIdle(s weak.Pointer[Sharer]) {
	runtime.AddCleanup(new(pool.GCSentinel), func(s weak.Pointer[Sharer]) {
		if sharer := s.Value(); sharer != nil && sharer.stillUsed() {
			releaseIdle(s)
		}
	}, s)
}

func (s *Sharer) stillUsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.idle.used {
		s.idle.list, s.idle.watched = nil, false
		return false
	}
	s.idle.used = false
	return true
}
