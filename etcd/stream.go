package etcd

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// checkInterval is how often a stream asks the cluster for its revision. etcd itself speaks
// of it every ten minutes, too rarely to tell a quiet prefix from a dead connection, and
// not at all to a watch from a revision that it has not reached.
const checkInterval = 20 * time.Second

// Watch follows the prefix from a revision.
func (s *Source[V]) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*Entry[V]], error) {
	if q.Initial {
		return nil, tarn.Because(tarn.ReasonNoWatchList, 0, fmt.Errorf("etcd: watch %s: a watch cannot begin with all keys", s.prefix))
	}
	from, err := parseVersion(q.From)
	if err != nil {
		return nil, err
	}
	// The stream outlives ctx, which is of the call. Without a leader it fails, instead of
	// waiting at a member that is cut off from the others.
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(context.WithoutCancel(ctx)))
	// The client waits for the cluster to confirm the watch, for as long as its context lasts.
	inTime := context.AfterFunc(ctx, cancel)
	w := &stream[V]{source: s, cancel: cancel, checks: make(chan check)}
	w.from.Store(from)
	w.responses = s.client.Watch(watching, s.first(), clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.prefix)), clientv3.WithRev(from+1),
		clientv3.WithPrevKV(), clientv3.WithProgressNotify(), clientv3.WithFragment())
	if !inTime() {
		for range w.responses { // until the client has let go
		}
		return nil, context.Cause(ctx)
	}
	if q.Timeout > 0 {
		w.timeout = time.NewTimer(q.Timeout)
	}
	w.running.Go(func() { w.keepChecking(watching) })
	return w, nil
}

// stream is a watch of a prefix.
type stream[V any] struct {
	source *Source[V]
	// from is the revision that the stream has come to.
	from      atomic.Int64
	responses clientv3.WatchChan
	checks    chan check
	timeout   *time.Timer // nil if it has none
	cancel    context.CancelFunc
	running   sync.WaitGroup

	// pending are the events that came and were not handed over.
	pending []tarn.Event[*Entry[V]]
	revs    []int64 // the revision of each
	err     error   // what ends the stream after them
}

// check is what the cluster answered when it was asked for its revision, and the revision that
// the stream had come to before that.
type check struct {
	revision, from int64
	err            error
}

// keepChecking asks for the revision until the stream is closed, in two ways. A progress
// notification proves that everything up to its revision has been sent, and comes only from
// a cluster that has reached the revision of the watch. A read shows one that went back, and
// one that cannot be reached: the client connects again for ever, and does not say so.
func (w *stream[V]) keepChecking(ctx context.Context) {
	tick := time.NewTicker(w.source.checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_ = w.source.client.RequestProgress(ctx) // a failure shows in the read
		from := w.from.Load()
		c := w.source.check(ctx)
		c.from = from
		select {
		case <-ctx.Done():
			return
		case w.checks <- c:
		}
	}
}

func (s *Source[V]) check(ctx context.Context) check {
	ctx, cancel := context.WithTimeout(ctx, s.checkEvery)
	defer cancel()
	response, err := s.client.Get(ctx, s.first(), clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.prefix)), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil {
		return check{err: err}
	}
	return check{revision: response.Header.Revision}
}

// Next returns whole transactions.
func (w *stream[V]) Next(ctx context.Context, buf []tarn.Event[*Entry[V]]) (int, error) {
	for len(w.pending) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		if err := w.receive(ctx); err != nil {
			return 0, err
		}
	}
	n := min(len(buf), len(w.pending))
	for n > 0 && n < len(w.pending) && w.revs[n] == w.revs[n-1] {
		n--
	}
	if n == 0 {
		w.pending, w.revs = nil, nil
		w.err = tarn.Because(tarn.ReasonExpired, 0, fmt.Errorf("etcd: watch %s: a transaction has more changes than are taken at once, %d; all keys are read instead", w.source.prefix, len(buf)))
		return 0, w.err
	}
	copy(buf, w.pending[:n])
	clear(w.pending[:n]) // they belong to the caller now
	w.pending, w.revs = w.pending[n:], w.revs[n:]
	return n, nil
}

// receive waits for a response. Only the end of ctx is returned: what ends the stream is
// kept, behind the events that came before.
func (w *stream[V]) receive(ctx context.Context) error {
	var timeout <-chan time.Time
	if w.timeout != nil {
		timeout = w.timeout.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timeout:
		w.err = io.EOF
	case c := <-w.checks:
		switch {
		case c.err != nil:
			w.err = tarn.Because(tarn.ReasonLost, 0, w.source.explain("watch", w.from.Load(), c.err))
		case c.revision < c.from:
			w.add(c.revision, tarn.Event[*Entry[V]]{Type: tarn.EventBookmark, Version: version(c.revision)})
		}
	case r, open := <-w.responses:
		switch {
		case !open:
			w.err = io.EOF
		case r.Err() != nil:
			w.err = w.source.explain("watch", w.from.Load(), r.Err())
		default:
			w.take(r)
		}
	}
	return nil
}

func (w *stream[V]) take(r clientv3.WatchResponse) {
	if r.IsProgressNotify() {
		w.add(r.Header.Revision, tarn.Event[*Entry[V]]{Type: tarn.EventBookmark, Version: version(r.Header.Revision)})
		return
	}
	for _, e := range r.Events {
		w.add(e.Kv.ModRevision, w.source.event(e))
	}
}

func (w *stream[V]) add(revision int64, e tarn.Event[*Entry[V]]) {
	w.from.Store(max(w.from.Load(), revision))
	w.pending, w.revs = append(w.pending, e), append(w.revs, revision)
}

// event makes an event of one of etcd's. The last state of a deleted key is the one before,
// at the revision of the delete.
func (s *Source[V]) event(e *clientv3.Event) tarn.Event[*Entry[V]] {
	event := tarn.Event[*Entry[V]]{Type: tarn.EventModified}
	kv := e.Kv
	switch {
	case e.IsCreate():
		event.Type = tarn.EventAdded
	case e.Type == mvccpb.DELETE:
		event.Type = tarn.EventDeleted
		if e.PrevKv == nil { // it was compacted
			event.Bad = s.bad(kv, fmt.Errorf("%w: its last value was compacted", tarn.ErrUndecodable))
			return event
		}
		last := e.PrevKv
		kv = &mvccpb.KeyValue{Key: last.Key, Value: last.Value, CreateRevision: last.CreateRevision, ModRevision: kv.ModRevision, Version: last.Version, Lease: last.Lease}
	}
	var err error
	if event.Object, err = s.entry(kv); err != nil {
		event.Bad = s.bad(kv, err)
	}
	return event
}

// Close ends the watch.
func (w *stream[V]) Close() {
	w.cancel()
	if w.timeout != nil {
		w.timeout.Stop()
	}
	w.running.Wait()
	for range w.responses { // until the client has let go
	}
}
