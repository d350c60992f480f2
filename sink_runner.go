package tarn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// sinkRunner feeds one sink of a replica, in a goroutine of its own.
//
// The fan-out adds changes while it holds its lock, and never waits for the sink. The
// runner gathers them, commits, and tries again when that fails. A sink is in one of the
// states of [sinkState]; only one that follows has a queue.
type sinkRunner[T any] struct {
	sink   Sink[T]
	policy SinkPolicy[T]
	fanout *fanout[T]
	clock  Clock
	logger *slog.Logger

	// running ends when the replica stops.
	running context.Context
	stop    context.CancelFunc

	// committing has a token while the sink is used. It is a channel so that a flush
	// which the sink asks for does not outlast running.
	committing chan struct{}
	// retry is a batch whose commit failed and which must come again as it is.
	retry sinkQueue[T]

	mu    sync.Mutex
	state sinkState
	queue sinkQueue[T]
	// taken is how much is on its way to the sink, or waits in retry.
	taken queueSize
	// ahead has, by section, the versions that the sink had and the copy has not reached.
	ahead map[string]Position
	// skipped are the sections that the last comparison with the sink left out: the copy had no
	// content of them, or an older one that did not show what the sink lacked.
	skipped map[string]bool
	// foreign has the epochs of positions that are of another source, by section.
	foreign map[string]string
	// distrusted says that the content of the sink is not compared but replaced.
	distrusted bool
	// committed is what the sink has; failure is why it does not follow.
	committed Positions
	failure   error
	since     time.Time
	failures  int64
	gaps      int64
	refused   refusedObjects

	// wake has a token when there is something to do, full when a batch is full.
	wake, full chan struct{}
	// opened is closed when the copy need not wait for the sink any longer.
	opened chan struct{}
	waited func()
}

// sinkState says what a runner must do before its sink follows the copy.
type sinkState uint8

const (
	// sinkOpening: the sink has not said yet what it holds.
	sinkOpening sinkState = iota
	// sinkWaiting: it holds another state than the copy, and is compared with the copy
	// once that is synced.
	sinkWaiting
	// sinkFollowing: every change is queued for it.
	sinkFollowing
	// sinkClosed: the replica has stopped.
	sinkClosed
)

func newSinkRunner[T any](sink Sink[T], h *fanout[T]) *sinkRunner[T] {
	s := &sinkRunner[T]{
		sink: sink, policy: sink.Policy().withDefaults(), fanout: h, clock: h.clock, logger: h.logger,
		committing: make(chan struct{}, 1),
		wake:       make(chan struct{}, 1), full: make(chan struct{}, 1), opened: make(chan struct{}),
	}
	s.running, s.stop = context.WithCancel(context.Background())
	s.waited = sync.OnceFunc(func() { close(s.opened) })
	s.queue.policy = s.policy
	return s
}

// use waits until nobody else uses the sink, and release lets others use it.
func (s *sinkRunner[T]) use(ctx context.Context) error {
	select {
	case s.committing <- struct{}{}: // also if ctx has ended
		return nil
	default:
	}
	select {
	case s.committing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *sinkRunner[T]) release() { <-s.committing }

// add queues what the copy has taken. The fan-out's lock is held.
func (s *sinkRunner[T]) add(contact time.Time, changes []Change[T], at Position, gap *Gap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == (Position{Section: at.Section}) {
		delete(s.foreign, at.Section) // it was removed: one of the same name begins anew
	}
	if s.state != sinkFollowing {
		return
	}
	if s.skipped[at.Section] {
		s.waitAgain()
		return
	}
	if until, ok := s.ahead[at.Section]; ok {
		if changes, ok = s.passed(changes, at, gap, until); !ok {
			return
		}
	}
	if gap != nil {
		s.queue.addGap(*gap)
	}
	s.queue.add(s.clock.Now(), contact, changes, at)
	s.signal()
}

// passed returns the changes that a sink does not have which is ahead of the copy; false
// if there is nothing to queue.
func (s *sinkRunner[T]) passed(changes []Change[T], at Position, gap *Gap, until Position) ([]Change[T], bool) {
	removed := at == Position{Section: at.Section}
	if gap != nil && gap.Cause != GapBad || at.Epoch != until.Epoch || removed {
		s.waitAgain()
		return nil, false
	}
	var news []Change[T]
	for _, c := range changes {
		order, comparable := c.Version.Compare(until.Version)
		switch {
		case c.Rewound || c.Missed || c.Moved || !comparable:
			s.waitAgain() // versions do not tell whether the sink has it
			return nil, false
		case order > 0:
			news = append(news, c)
		}
	}
	if at.Version.OlderThan(until.Version) {
		return nil, false
	}
	delete(s.ahead, at.Section)
	return news, true
}

// waitAgain gives up following: the sink is compared with the copy instead.
func (s *sinkRunner[T]) waitAgain() {
	s.state, s.ahead, s.skipped = sinkWaiting, nil, nil
	s.queue = sinkQueue[T]{policy: s.policy, from: s.committed.Clone(), at: s.committed.Clone(), gaps: s.queue.openGaps()}
	s.signal()
}

// signal wakes the runner.
func (s *sinkRunner[T]) signal() {
	signal(s.wake)
	if len(s.queue.changes) >= s.policy.BatchSize {
		signal(s.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	firstSinkRetry   = time.Second
	longestSinkRetry = 30 * time.Second
)

// run serves the sink until ctx ends.
func (s *sinkRunner[T]) run(ctx context.Context) {
	for s.current() == sinkOpening {
		if !s.try(ctx, s.open) {
			return
		}
	}
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		if s.current() == sinkWaiting && !s.fanout.isSynced() {
			continue // the fan-out wakes it
		}
		if !s.gather(ctx) || !s.try(ctx, s.flush) {
			return
		}
	}
}

func (s *sinkRunner[T]) current() sinkState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// try does something until it succeeds, ever less often; false when ctx ends.
func (s *sinkRunner[T]) try(ctx context.Context, do func(context.Context) error) bool {
	for wait := firstSinkRetry; do(ctx) != nil; wait = min(2*wait, longestSinkRetry) {
		if !pause(ctx, s.clock, wait) {
			return false
		}
	}
	return ctx.Err() == nil
}

// gather waits until a batch is full or has waited long enough.
func (s *sinkRunner[T]) gather(ctx context.Context) bool {
	if s.policy.Delay <= 0 {
		return true
	}
	timer := s.clock.NewTimer(s.policy.Delay)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-s.full:
	case <-ctx.Done():
		return false
	}
	return true
}

// flush commits what waits, after it has compared a sink that holds another state.
func (s *sinkRunner[T]) flush(ctx context.Context) error {
	if s.current() == sinkWaiting && s.fanout.isSynced() {
		if err := s.reconcile(ctx); err != nil {
			return err
		}
	}
	if err := s.use(ctx); err != nil {
		return err
	}
	defer s.release()
	if s.current() == sinkClosed {
		return ErrStopped
	}
	if s.retry.any {
		s.retry.again = true
	} else {
		s.retry = s.take()
	}
	if !s.retry.any {
		return nil
	}
	err := s.commit(ctx, s.retry)
	if err == nil {
		s.retry = sinkQueue[T]{}
	} else if !s.policy.EveryState {
		s.putBack()
	}
	return err
}

func (s *sinkRunner[T]) take() sinkQueue[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.full: // it was this batch
	default:
	}
	batch := s.queue.take()
	s.taken = batch.size()
	return batch
}

// putBack lets the batch that failed wait together with what came since.
func (s *sinkRunner[T]) putBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry.putBack(s.queue)
	s.queue, s.retry, s.taken = s.retry, sinkQueue[T]{}, queueSize{}
}

// commit gives the sink one batch. If the sink has lost its content, it gets all of it.
func (s *sinkRunner[T]) commit(ctx context.Context, q sinkQueue[T]) error {
	err := s.sink.Commit(ctx, s.batch(q))
	if errors.Is(err, ErrSinkEmpty) {
		s.putBack() // what it missed is a gap
		s.fanout.restart(s)
		q = s.take()
		s.retry = q
		err = s.sink.Commit(ctx, s.batch(q))
	}
	refused, some := errors.AsType[ObjectErrors](err)
	if some {
		s.logger.Warn("objects could not be written to a sink", "sink", s.policy.Name, "err", err)
		err = nil
	}
	s.committedTo(q, refused, err)
	return err
}

// restart queues the whole content, for a sink that has none.
func (h *fanout[T]) restart(s *sinkRunner[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.ahead, s.skipped = sinkFollowing, nil, nil
	h.addGapsToUnknown(s)
	s.queue.replaceAll(s.clock.Now(), h.contact, h.initial(), h.sectionPositions())
}

// committedTo records how a commit went.
func (s *sinkRunner[T]) committedTo(q sinkQueue[T], refused ObjectErrors, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.committed, s.taken = q.at.Clone(), queueSize{}
		s.gaps += int64(len(q.gaps))
		if len(s.refused) > 0 || len(refused) > 0 {
			s.refused = s.refused.afterCommit(q.whole, q.lastVersions(), refused)
		}
	}
	s.noteFailure(err)
}

// noteFailure records why the sink does not follow, or that it does. mu is held.
func (s *sinkRunner[T]) noteFailure(err error) {
	if errors.Is(err, context.Canceled) && s.running.Err() != nil {
		return // the replica stops; close tries once more
	}
	before := s.failure
	s.failure = err
	switch {
	case err != nil:
		s.failures++
		if before == nil {
			s.since = s.clock.Now()
		}
		if before == nil || before.Error() != err.Error() {
			s.logger.Error("a sink cannot be written; the copy is not affected, and the sink is tried again", "sink", s.policy.Name, "err", err)
		}
	case before != nil:
		s.logger.Info("a sink is written again", "sink", s.policy.Name)
	}
}

// lags says whether a sink that follows has changes that are not committed.
func (s *sinkRunner[T]) lags() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == sinkFollowing && (s.taken.any || s.queue.any)
}

// finalCommit is how long the last commits of a replica that stops may take, if the sink
// heeds their context.
const finalCommit = time.Second

// close commits what waits and lets the sink go. run has ended.
func (s *sinkRunner[T]) close() {
	ctx, cancel := context.WithTimeout(context.Background(), finalCommit)
	defer cancel()
	for s.lags() { // twice, if changes came after a batch that failed
		if err := s.flush(ctx); err != nil {
			s.logger.Error("the last changes could not be written to a sink, which begins with an older state when it is attached again", "sink", s.policy.Name, "err", err)
			break
		}
	}
	_ = s.use(context.Background()) // a flush that the sink asked for ends with running
	defer s.release()
	s.mu.Lock()
	s.state = sinkClosed
	s.mu.Unlock()
	s.sink.Close()
}

// health is how far the sink has followed.
func (s *sinkRunner[T]) health() SinkHealth {
	var h SinkHealth
	reporter, reports := s.sink.(DiskReporter)
	if reports {
		h = reporter.Disk()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Name, h.Gaps = s.policy.Name, s.gaps
	h.Bad, h.BadCount = s.refused.list()
	if !reports {
		h.Version = s.committed.Oldest()
	}
	waiting := s.queue.size()
	h.Pending, h.PendingBytes = s.taken.changes+waiting.changes, s.taken.bytes+waiting.bytes
	if s.taken.any {
		waiting = s.taken
	}
	if waiting.any {
		h.Lag = s.clock.Now().Sub(waiting.oldest)
	}
	if s.failures > 0 {
		h.Failures = s.failures
	}
	if s.failure != nil {
		h.Err, h.ErrSince = s.failure, s.since
	}
	return h
}
