package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tarnproject/tarn"
)

// ErrFed says that another feeder writes the bucket. The sink is tried again, and takes over
// when the other one has stopped, or its lease has ended.
var ErrFed = errors.New("another feeder writes it")

// ErrOtherResource says that a bucket was written for another resource than [Bucket].Resource. The
// sink leaves it alone: give one of the two another name, or delete the bucket.
var ErrOtherResource = errors.New("it is the bucket of another resource")

// handover is how long a feeder that stood by waits after the other one has stopped: by then
// its own copy has everything that the other one wrote.
const handover = 2 * time.Second

// acquireTries is how often the bucket is claimed again if another client writes to it in
// the meantime: a feeder that closes writes a checkpoint or two, and then no more.
const acquireTries = 10

// acquire makes this sink the feeder of the bucket.
func (s *Sink[T]) acquire(ctx context.Context) error {
	err := s.tryAcquire(ctx)
	for range acquireTries {
		if !errors.Is(err, errOther) {
			return err
		}
		err = s.tryAcquire(ctx)
	}
	return err
}

// tryAcquire writes a checkpoint after the last one, if no other feeder is alive. It fails
// with errOther if another client wrote one first. Times are the server's, so that clocks of
// feeders need not agree.
func (s *Sink[T]) tryAcquire(ctx context.Context) error {
	info, err := s.find(ctx)
	if err != nil {
		return err
	}
	at, err := s.checkpoint(ctx)
	if err != nil {
		return err
	}
	if mine := s.bucket.Resource; mine != "" && at.Resource != "" && at.Resource != mine {
		return fmt.Errorf("%w: it has %s, and this feeder writes %s; give one of them another name, or delete the bucket", ErrOtherResource, at.Resource, mine)
	}
	if at.Format != 0 && at.Session != s.session {
		ends := at.ends(at.time)
		if s.stoodBy && at.Released {
			ends = ends.Add(handover)
		}
		if left := ends.Sub(info.TimeStamp); left > 0 {
			s.stoodBy = s.stoodBy || !at.Released
			return fmt.Errorf("%w: %s; it was alive at %s, and this feeder takes over when it is silent for %s", ErrFed, at.Feeder, at.time.Local().Format(time.TimeOnly), at.Lease)
		}
	}
	// A stream that was bounded, by somebody or as a stream of events, may lack objects.
	s.dropped = s.dropped || mayDrop(info.Config) && !s.bucket.drops()
	if s.dropped {
		at.Positions = nil
	}
	if err := s.configure(ctx, info.Config); err != nil {
		return err
	}
	s.at, s.known = s.relabelled(at), true
	s.stoodBy = false
	if err := s.speak(ctx, false); err != nil {
		return err
	}
	s.dropped, s.confirmed = false, at.Commit
	return nil
}

// Claim makes this sink the feeder of the bucket before Open, and keeps the lease until
// Close. It fails with [ErrFed] while another feeder is alive.
func (s *Sink[T]) Claim(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	if err := s.claim(ctx); err != nil {
		return s.explain("claim", err)
	}
	return nil
}

func (s *Sink[T]) claim(ctx context.Context) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	if s.stop == nil {
		refreshing, stop := context.WithCancel(context.Background())
		s.stop = stop
		s.running.Go(func() { s.keepLease(refreshing) })
		if !s.bucket.Events {
			s.running.Go(func() { s.keepForgetting(refreshing) })
		}
	}
	return nil
}

// own makes sure that this sink still is the feeder, and knows the checkpoint. It fails with
// [tarn.ErrSinkEmpty] if the bucket does not have what this sink has written, and records
// what it has.
func (s *Sink[T]) own(ctx context.Context) error {
	if s.known && !s.replaced {
		return nil
	}
	err := s.ownAgain(ctx)
	if errors.Is(err, tarn.ErrSinkEmpty) {
		s.held = s.at.positions()
	}
	return err
}

func (s *Sink[T]) ownAgain(ctx context.Context) error {
	at, err := s.checkpoint(ctx)
	if err != nil && !noStream(err) {
		return err
	}
	s.replaced = s.replaced || at.Session != s.session
	if !s.replaced {
		lost := at.Serial < s.at.Serial
		s.at, s.known = s.relabelled(at), true
		s.fence(nil)
		switch {
		case lost:
			return fmt.Errorf("the server lost everything written after version %s: %w", s.version(), tarn.ErrSinkEmpty)
		case s.unsettled:
			return s.speak(ctx, false)
		}
		return nil
	}
	if err := s.acquire(ctx); err != nil {
		if errors.Is(err, ErrFed) {
			s.fence(err)
		}
		return err
	}
	s.fence(nil)
	s.replaced = false
	if at.Format == 0 {
		return fmt.Errorf("the bucket is new: %w", tarn.ErrSinkEmpty)
	}
	return fmt.Errorf("another feeder wrote it meanwhile: %w", tarn.ErrSinkEmpty)
}

// version is the one that all sections have reached.
func (s *Sink[T]) version() tarn.Version {
	var all tarn.Positions
	for _, p := range s.at.positions() {
		all.Move(p)
	}
	return all.Oldest()
}

// fence records why this feeder may not write, or that it may.
func (s *Sink[T]) fence(err error) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if err != nil && s.report.Err == nil {
		s.report.ErrSince = time.Now()
	}
	s.report.Err = err
}

// speak writes the checkpoint again, which renews the lease, or gives it up. It also ends a
// chain that another feeder has begun, or this one before it lost its connection; what that
// chain has written is counted.
func (s *Sink[T]) speak(ctx context.Context, released bool) error {
	before := s.at
	next := before.Checkpoint
	next.Released = released
	if err := s.write(ctx, nil, next); err != nil {
		return err
	}
	between := s.at.sequence - before.sequence - 1
	if !before.Incomplete || between == 0 {
		return nil
	}
	next.Objects += between
	return s.write(ctx, nil, next)
}

// write writes messages and the checkpoint after them, in one atomic batch that is refused
// if the checkpoint before is not the last one.
func (s *Sink[T]) write(ctx context.Context, messages []message, next Checkpoint) error {
	return s.writeAs(ctx, "", messages, next)
}

// writeAs is write, with an id of the checkpoint's message.
func (s *Sink[T]) writeAs(ctx context.Context, id string, messages []message, next Checkpoint) error {
	m, next, err := s.stamp(next, s.at.Serial)
	if err != nil {
		return err
	}
	if id != "" {
		m.header.add(headerID, id)
	}
	m.header.add(headerExpected, strconv.FormatUint(s.at.sequence, 10))
	sequence, err := publish(ctx, s.js.Conn(), append(messages, m))
	if err != nil {
		s.known = false
		return err
	}
	s.settle(next, sequence)
	return nil
}

// stamp makes the message of the checkpoint that follows one.
func (s *Sink[T]) stamp(next Checkpoint, before uint64) (message, Checkpoint, error) {
	next.Format, next.Serial = checkpointFormat, before+1
	next.Feeder, next.Session, next.Lease = s.bucket.Feeder, s.session, s.bucket.Lease.String()
	next.Resource = cmp.Or(s.bucket.Resource, next.Resource)
	data, err := next.encode()
	return message{s.bucket.prefix() + checkpointKey, header{{headerRollup, "sub"}}, data}, next, err
}

// settle records the checkpoint that is the last message of the bucket.
func (s *Sink[T]) settle(at Checkpoint, sequence uint64) {
	s.at, s.known, s.unsettled = placed{at, sequence, time.Now()}, true, false
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.report.Version = s.version()
}

// keepLease renews the lease until ctx ends. The next commit notices a failure, because
// it asks who the feeder is.
func (s *Sink[T]) keepLease(ctx context.Context) {
	tick := time.NewTicker(s.bucket.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.renew(ctx)
	}
}

func (s *Sink[T]) renew(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.bucket.Lease)
	defer cancel()
	var err error
	for range 1 + lateTries {
		if !s.recover(ctx) {
			break // a commit, or the next Open, finds out what it means
		}
		if err = s.speak(ctx, false); !errors.Is(err, errOther) {
			return
		}
	}
	if err != nil {
		s.fence(s.explain("renew the lease of", err))
	}
}

// recover asks for the checkpoint if it is not known, and says whether it still is this
// sink's.
func (s *Sink[T]) recover(ctx context.Context) bool {
	if s.known {
		return true
	}
	at, err := s.checkpoint(ctx)
	if err != nil || at.Session != s.session || at.Serial < s.at.Serial {
		return false
	}
	s.at, s.known = s.relabelled(at), true
	return true
}

// relabelled is a checkpoint of the bucket that says what this sink copies. The positions in
// one that said otherwise mean nothing here.
func (s *Sink[T]) relabelled(at placed) placed {
	if s.opened && at.Of != s.copyOf {
		at.Of, at.Positions = s.copyOf, nil
	}
	if s.source != "" && at.Source != s.source {
		if other, _ := otherSource(at.Source, s.source); other {
			at.Positions = nil
		}
		at.Source = s.source
	}
	return at
}

// release gives the lease up, if it is this sink's. A commit that was given up may take
// effect meanwhile, so that the checkpoint is another one. If it cannot be given up, the next
// feeder waits for its end.
func (s *Sink[T]) release(ctx context.Context) {
	for s.recover(ctx) && errors.Is(s.speak(ctx, true), errOther) {
	}
	s.known = false
}
