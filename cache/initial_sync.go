package cache

// initialSync follows the first content of a queue until its consumer has processed
// the last of it: only then have readers after the queue seen one whole state.
//
// The queue's lock guards the counting; done and synced need none, so that they can
// be called while an item is being processed under that lock.
type initialSync struct {
	done      chan struct{}
	populated bool
	left      int
}

func newInitialSync() initialSync { return initialSync{done: make(chan struct{})} }

// populate says that the queue has its first content, n entries of it. Only the
// first call counts: a queue that began with single changes, n = 0, never had a
// whole state to wait for.
func (s *initialSync) populate(n int) {
	if s.populated {
		return
	}
	s.populated = true
	s.left = n
	if n == 0 {
		close(s.done)
	}
}

// share gives how many of the next n entries belong to the first content.
func (s *initialSync) share(n int) int { return min(n, s.left) }

// processed says that the consumer is through with n entries of the first
// content.
func (s *initialSync) processed(n int) {
	if n == 0 {
		return
	}
	s.left -= n
	if s.left == 0 {
		close(s.done)
	}
}

func (s *initialSync) synced() bool { return hasSynced(s.done) }
