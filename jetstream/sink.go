package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/tarnproject/tarn"
)

// Sink keeps a copy in a bucket; see [tarn.Sink]. It is a [tarn.Restorer]: a replica with
// this sink begins with the content of the bucket, and watches its source from there.
//
//   - A commit is one atomic batch of at most 1,000 messages. A larger one, such as a first
//     state, is a chain of messages between a checkpoint that says that the commit is
//     incomplete and one that ends it.
//   - A batch names the checkpoint before it, and a message of a chain the message before it.
//     If that is not the last one, the server refuses it: two feeders cannot write in turns.
//   - After an answer that was lost, the checkpoint tells whether a commit was written. One
//     that was written in part is compared with the bucket.
//
// Why not message ids, by which JetStream drops repeated messages: JetStream remembers
// them for two minutes, and a server can be unreachable for longer.
type Sink[T any] struct {
	bucketClient
	codec   Codec[T]
	session string
	// copyOf and askSource are Of and Source of the [Bucket]. They may be set after the sink was
	// claimed, when goroutines use the bucket already.
	copyOf    string
	askSource func(ctx context.Context) (string, error)

	// mu is held while the bucket is written. The lease is not renewed then.
	mu sync.Mutex
	// at is the last checkpoint that is known to be there, if known is set. Without it the
	// bucket must be asked.
	at    placed
	known bool
	// unsettled says that messages of a chain may still arrive: the next checkpoint ends it.
	unsettled bool
	// pending names the commit whose end is not known, or that was written in part. It has one
	// name however often it is tried. confirmed names the one that the bucket had when Open or
	// Commit last succeeded: if the checkpoint names any other one, something of a later
	// commit has arrived.
	pending, confirmed string
	// batchesOnly says that the server refused a chain, as it does if somebody else writes
	// keys of their own to the bucket. The commit is then written in atomic batches.
	batchesOnly bool
	// batchSize is maxBatch, and waiting is waitingStates, except in tests.
	batchSize, waiting int
	// replaced says that the checkpoint was not this session's, until own has said so. A
	// checkpoint that this sink wrote since then may have had no answer.
	replaced bool
	// opened says that copyOf is known, and source is the argument of confirm.
	opened bool
	source string
	// stoodBy says that another feeder was alive when this one was opened.
	stoodBy bool
	// dropped says that the server may have dropped objects because the stream had bounds that
	// it should not have, until a checkpoint without positions says so too.
	dropped bool
	// held are the positions that the bucket had when it lacked what this sink had written,
	// until a commit: what is gone is in its gaps. It is nil if nothing was lost.
	held []tarn.Position
	// bad has the objects that could not be written, with their versions.
	bad map[tarn.Key]tarn.Version
	// touched has the objects of commits while old delete markers are looked for, else it is nil.
	touched map[tarn.Key]bool

	// objectSize is about how long objects are, so that buffers need not grow.
	objectSize atomic.Int64

	// report is what Disk returns: it does not wait for a write.
	reporting sync.Mutex
	report    tarn.SinkHealth

	stop    context.CancelFunc
	running sync.WaitGroup
}

// New makes a sink that keeps a collection in a bucket. The caller owns the connection and
// closes it after the replica has stopped; it should reconnect for ever, by
// nats.MaxReconnects(-1) and nats.IgnoreAuthErrorAbort().
func New[T any](js jetstream.JetStream, bucket Bucket, codec Codec[T]) (*Sink[T], error) {
	if js == nil || codec == nil {
		return nil, errors.New("jetstream: a sink needs a connection and a codec")
	}
	bucket, err := bucket.withDefaults()
	if err != nil {
		return nil, err
	}
	if bucket.Feeder == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		bucket.Feeder = fmt.Sprintf("%s, process %d", host, os.Getpid())
	}
	return &Sink[T]{
		bucketClient: bucketClient{js: js, bucket: bucket}, codec: codec, session: nuid.Next(),
		copyOf: bucket.Of, askSource: bucket.Source, batchSize: maxBatch, waiting: waitingStates,
	}, nil
}

// SetOrigin sets Of and Source of the [Bucket], for a sink that is claimed before they
// are known. It must be called before Open.
func (s *Sink[T]) SetOrigin(of string, source func(ctx context.Context) (string, error)) {
	s.copyOf, s.askSource = of, source
}

// Policy asks for every state, unless the bucket keeps only one of each object.
func (s *Sink[T]) Policy() tarn.SinkPolicy[T] {
	return tarn.SinkPolicy[T]{
		Name: "jetstream", EveryState: s.everyState(), Delay: gatherFor, BatchSize: maxBatch - 1,
		MaxBytes: int64(s.waiting) * waitingSize, SizeOf: func(tarn.Change[T]) int { return waitingSize },
	}
}

func (s *Sink[T]) everyState() bool { return s.bucket.Events || s.bucket.History > 1 }

// gatherFor is how long changes are gathered: a batch costs the server two files. After
// waitingStates of about waitingSize that could not be written, states are folded.
const (
	gatherFor     = 20 * time.Millisecond
	waitingStates = 16 << 10
	waitingSize   = 4 << 10
)

// Open makes this sink the feeder of the bucket, and returns what the bucket has. While
// another feeder is alive it fails with [ErrFed].
func (s *Sink[T]) Open(ctx context.Context, _ func() error) (tarn.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	if err := s.claim(ctx); err != nil {
		return tarn.Kept{}, s.explain("open", err)
	}
	s.replaced = false
	if _, err := s.loadBad(ctx); err != nil {
		return tarn.Kept{}, s.explain("open", err)
	}
	s.opened = true
	s.at = s.relabelled(s.at) // the next checkpoint says so
	kept := tarn.Kept{Positions: s.at.positions(), LastContact: s.at.LastContact}
	for i := range kept.Positions {
		// The copy that is loaded lacks what could not be written.
		kept.Positions[i].Complete = kept.Positions[i].Complete && len(s.bad) == 0
	}
	if s.askSource != nil {
		kept.Confirm = s.confirmOnce()
	}
	return kept, nil
}

// openWait is how long Open may take, less than replicas wait for their sinks.
const openWait = 4 * time.Second

// Held lists the objects of the bucket.
func (s *Sink[T]) Held(ctx context.Context) iter.Seq2[tarn.Meta, error] {
	return func(yield func(tarn.Meta, error) bool) {
		s.mu.Lock()
		all, err := s.states(ctx)
		s.mu.Unlock()
		if err != nil {
			yield(tarn.Meta{}, s.explain("list", err))
			return
		}
		for _, held := range all {
			if !held.deleted && !yield(held.Meta, nil) {
				return
			}
		}
	}
}

// Load reads the objects of the bucket. It fails if one of them cannot be decoded: the
// copy then begins empty, and the bucket is compared. It also fails for a stream of
// events that may have dropped the only state of an object.
func (s *Sink[T]) Load(ctx context.Context) ([]tarn.Change[T], error) {
	s.mu.Lock()
	incomplete := s.at.Incomplete
	s.mu.Unlock() // it may take longer than a lease, which is renewed meanwhile
	if incomplete {
		return nil, s.explain("load", fmt.Errorf("%w: a commit was not written to its end", errUnusable))
	}
	if s.bucket.drops() {
		return nil, s.explain("load", fmt.Errorf("%w: it keeps states for a time, or up to a size, and may have dropped objects that did not change since", errUnusable))
	}
	all := map[tarn.Key]tarn.Change[T]{}
	var bad error
	err := s.walk(ctx, false, func(key string, r record, pending uint64) bool {
		name, ok := s.objectKey(key)
		if !ok {
			return pending > 0
		}
		held := stateOf(name, r.header)
		if held.foreign {
			bad = fmt.Errorf("%w: another client has written or deleted %s", errUnusable, name)
			return false
		}
		if held.deleted {
			delete(all, name)
			return pending > 0
		}
		object, err := s.codec.Decode(r.data)
		if err != nil {
			bad = fmt.Errorf("%w: %s: %w", errUnusable, name, err)
			return false
		}
		all[name] = tarn.Change[T]{Type: tarn.Add, Key: name, Object: object, Version: held.Version}
		return pending > 0
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, s.explain("load", err)
	}
	changes := make([]tarn.Change[T], 0, len(all))
	for _, c := range all {
		changes = append(changes, c)
	}
	return changes, nil
}

// Disk returns the state of the bucket, and why this feeder does not write to it.
func (s *Sink[T]) Disk() tarn.SinkHealth {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	return s.report
}

// Close releases the bucket, so that another feeder need not wait for the end of the
// lease.
func (s *Sink[T]) Close() {
	if s.stop != nil {
		s.stop()
	}
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	s.release(ctx)
}

const closeWait = time.Second

var errUnusable = errors.New("what the bucket has cannot be used")

// explain says what failed, and where.
func (s *Sink[T]) explain(doing string, err error) error {
	return fmt.Errorf("jetstream: %s bucket %s: %w", doing, s.bucket.Name, err)
}
