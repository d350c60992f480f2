package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// checkInterval is how often a stream asks for the checkpoint, to find that the bucket went
// back, or is another one: then no message follows the last that was read. It also finds a
// consumer that delivers nothing though there is something, and still has heartbeats.
const checkInterval = 20 * time.Second

// largestCommit is how many messages of one commit a stream holds before it gives up: all is
// read instead.
const largestCommit = 20_000

// Watch follows the bucket from a version that this source has handed out, or that of the
// last checkpoint.
func (s *Source[T]) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[T], error) {
	if q.Initial {
		return nil, tarn.Because(tarn.ReasonNoWatchList, 0, fmt.Errorf("jetstream: watch bucket %s: a watch cannot begin with all objects", s.bucket.Name))
	}
	if err := s.findOrigin(ctx); err != nil {
		return nil, s.explain("watch", err)
	}
	at, err := s.checkpoint(ctx)
	if err != nil {
		return nil, s.explain("watch", err)
	}
	from, err := s.start(q.From, at)
	if err != nil {
		return nil, s.explain("watch", err)
	}
	consumer, err := s.js.OrderedConsumer(ctx, s.bucket.stream(), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from.sequence + 1,
		InactiveThreshold: consumerIdle, MaxResetAttempts: 1,
	})
	if err != nil {
		return nil, s.explain("watch", err)
	}
	messages, err := consumer.Messages(jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return nil, s.explain("watch", err)
	}
	// The stream outlives ctx, which is of the call.
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &stream[T]{
		source: s, at: from, after: q.From, held: q.Held, cancel: cancel, messages: messages,
		received: make(chan received[T]), recent: map[tarn.Key]T{},
	}
	w.seen.Store(from.sequence)
	if q.Timeout > 0 {
		w.timeout = time.NewTimer(q.Timeout)
	}
	w.running.Go(func() { w.read(watching) })
	w.running.Go(func() { w.keepChecking(watching) })
	return w, nil
}

// heartbeat is how often the server shows that it is there while nothing is written.
const heartbeat = 5 * time.Second

// start finds where a watch begins.
func (s *Source[T]) start(v tarn.Version, now placed) (mark, error) {
	version, err := s.versionOf(now)
	if err != nil && tarn.ReasonOf(err) != tarn.ReasonBusy {
		return mark{}, err
	}
	m, known := s.find(v)
	switch {
	case known && now.sequence >= m.sequence && now.Serial >= m.serial:
		return m, nil
	case err == nil && version == v:
		m = markOf(now)
		s.remember(m)
		return m, nil
	}
	return mark{}, expired("it is not known where version %s is in it; all is read instead", v)
}

func expired(format string, args ...any) error {
	return tarn.Because(tarn.ReasonExpired, 0, fmt.Errorf(format, args...))
}

// stream is a watch of a bucket. One goroutine reads the messages and another one looks at
// the checkpoint from time to time; both end with Close.
type stream[T any] struct {
	source *Source[T]
	// at is the last commit that was read, after the version that the reader has.
	at    mark
	after tarn.Version
	held  tarn.Holder

	messages jetstream.MessagesContext
	received chan received[T]
	timeout  *time.Timer // nil if it has none
	cancel   context.CancelFunc
	running  sync.WaitGroup

	// reading guards at against the goroutine that checks it.
	reading sync.Mutex
	// seen is the sequence of the last message, and waiting says that the next one is waited
	// for: the reader is not busy with those before it.
	seen    atomic.Uint64
	waiting atomic.Bool
	// recent and before have the objects of this commit and the last one, which the reader
	// may not hold yet.
	recent, before map[tarn.Key]T

	// pending are the events that came and were not handed over, err is what ends the stream
	// after them.
	pending []tarn.Event[T]
	err     error
}

// received is what a commit has, or what ends the stream.
type received[T any] struct {
	events []tarn.Event[T]
	err    error
}

// read hands over commits until ctx ends or one cannot be handed over.
func (w *stream[T]) read(ctx context.Context) {
	for {
		events, err := w.commit(ctx)
		select {
		case w.received <- received[T]{events, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// commit reads up to the next checkpoint that ends a commit.
func (w *stream[T]) commit(ctx context.Context) (events []tarn.Event[T], err error) {
	var objects uint64
	prefix := w.source.prefix()
	for {
		w.waiting.Store(true)
		m, err := w.messages.Next(jetstream.NextContext(ctx))
		w.waiting.Store(false)
		if err != nil {
			return nil, tarn.Because(tarn.ReasonLost, 0, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		w.seen.Store(meta.Sequence.Stream)
		key := strings.TrimPrefix(m.Subject(), prefix)
		if key == checkpointKey {
			if m.Headers().Get(headerOperation) != "" {
				return nil, expired("its checkpoint was deleted; all is read when it is fed again")
			}
			c, err := decodeCheckpoint(m.Data())
			if err != nil {
				return nil, err
			}
			if c.Incomplete {
				continue
			}
			return w.end(events, objects, placed{c, meta.Sequence.Stream, meta.Timestamp})
		}
		if len(events) >= largestCommit {
			return nil, expired("a commit has more than %d changes; all is read instead", largestCommit)
		}
		if isPurge(m.Headers()) {
			continue // the delete came before
		}
		if name, ok := w.source.objectKey(key); ok && stateOf(name, m.Headers()).foreign {
			events = append(events, tarn.Event[T]{Type: tarn.EventModified, Bad: tarn.BadObject{Key: name, Err: errForeign}})
		} else if ok {
			objects++
			if e, news := w.event(stateOf(name, m.Headers()), m.Data()); news {
				events = append(events, e)
			}
		} else if strings.HasPrefix(key, badPrefix) {
			var b BadObject
			if json.Unmarshal(m.Data(), &b) == nil {
				events = append(events, tarn.Event[T]{Type: tarn.EventModified, Bad: tarn.BadObject{Key: tarn.Key(b.Key), Version: tarn.Version(b.Version), Err: errors.New(b.Error)}})
			}
		}
	}
}

// end decides whether a commit follows from the one before.
func (w *stream[T]) end(events []tarn.Event[T], objects uint64, at placed) ([]tarn.Event[T], error) {
	version, err := w.source.versionOf(at)
	if err != nil {
		return nil, err
	}
	w.reading.Lock()
	defer w.reading.Unlock()
	next := markOf(at)
	switch {
	case next.epoch != w.at.epoch, version.OlderThan(w.at.version):
		return nil, expired("the origin went back from version %s to %s; all is read instead", w.at.version, version)
	case next.line != w.at.line:
		return nil, expired("the feeder has compared it with the origin at version %s; all is read instead", version)
	case next.objects-w.at.objects != objects:
		return nil, expired("of %d states only %d can still be read, because it keeps too few of an object; all is read instead", next.objects-w.at.objects, objects)
	}
	w.at, w.after = next, next.version
	w.recent, w.before = map[tarn.Key]T{}, w.recent
	w.source.remember(next)
	return append(events, tarn.Event[T]{Type: tarn.EventBookmark, Version: version}), nil
}

// event makes an event of a message; false if the reader has seen it.
func (w *stream[T]) event(is state, data []byte) (e tarn.Event[T], news bool) {
	if order, comparable := is.Version.Compare(w.after); w.after != w.at.version && comparable && order <= 0 {
		return e, false
	}
	e.Type = tarn.EventModified
	var err error
	switch {
	case is.deleted:
		e.Type = tarn.EventDeleted
		if e.Object, err = w.lastState(is, data); errors.Is(err, errNoLastState) && w.held != nil {
			return e, false // it came and went between two commits
		}
		delete(w.recent, is.Key)
		delete(w.before, is.Key)
	default:
		if e.Object, err = w.source.codec.Decode(data); err == nil {
			w.recent[is.Key] = e.Object
		}
	}
	if err != nil {
		e.Bad = tarn.BadObject{Key: is.Key, Version: is.Version, Err: fmt.Errorf("%w: %w", tarn.ErrUndecodable, err)}
	}
	return e, true
}

var errNoLastState = errors.New("a bucket does not keep the last state of a deleted object, and the copy does not have the one before")

// lastState is the last state of a deleted object: the one in the message, or the one that
// the reader holds, with the version of the delete.
func (w *stream[T]) lastState(is state, data []byte) (object T, err error) {
	if len(data) > 0 {
		return w.source.codec.Decode(data)
	}
	object, known := w.recent[is.Key]
	if !known {
		object, known = w.before[is.Key]
	}
	if !known && w.held != nil {
		if held, ok := w.held.Held(is.Key); ok {
			object, known = held.(T)
		}
	}
	if !known {
		return object, errNoLastState
	}
	if codec, ok := w.source.codec.(Versioner[T]); ok && is.Version != "" {
		return codec.WithVersion(object, is.Version)
	}
	return object, nil
}

// keepChecking compares the checkpoint with what was read, until ctx ends.
func (w *stream[T]) keepChecking(ctx context.Context) {
	tick := time.NewTicker(w.source.checkEvery)
	defer tick.Stop()
	// What was found when it was last looked at: the checkpoint, the message that had been read
	// and whether the next one was waited for.
	var before placed
	var seenBefore uint64
	idleBefore := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		idle := w.waiting.Load()
		now, err := w.source.checkpoint(ctx)
		if err != nil {
			continue // the heartbeats of the consumer tell whether the server is there
		}
		w.reading.Lock()
		at := w.at
		w.reading.Unlock()
		seen := w.seen.Load()
		var ended error
		switch {
		case now.sequence < at.sequence || now.Serial < at.serial:
			ended = expired("it went back, or is another one; all is read instead")
		case idle && idleBefore && seen == seenBefore && seen < before.sequence: // nothing came meanwhile
			ended = tarn.Because(tarn.ReasonLost, 0, fmt.Errorf("it has come to message %d, and nothing after %d is delivered", now.sequence, seen))
		}
		before, seenBefore, idleBefore = now, seen, idle
		if ended == nil {
			continue
		}
		select {
		case w.received <- received[T]{err: ended}:
		case <-ctx.Done():
		}
		return
	}
}

// Next returns the events of commits.
func (w *stream[T]) Next(ctx context.Context, buf []tarn.Event[T]) (int, error) {
	var timeout <-chan time.Time
	if w.timeout != nil {
		timeout = w.timeout.C
	}
	for len(w.pending) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-timeout:
			w.err = io.EOF
		case r := <-w.received:
			w.pending = r.events
			if r.err != nil {
				w.err = w.source.explain("watch", r.err)
			}
		}
	}
	n := copy(buf, w.pending)
	clear(w.pending[:n]) // they belong to the caller now
	w.pending = w.pending[n:]
	return n, nil
}

// Close ends the watch. Messages are stopped when nobody reads them any more: the client does
// not expect that while it opens a consumer again.
func (w *stream[T]) Close() {
	w.cancel()
	if w.timeout != nil {
		w.timeout.Stop()
	}
	w.running.Wait()
	w.messages.Stop()
}
