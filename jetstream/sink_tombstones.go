package jetstream

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tarnproject/tarn"
)

// A delete marker must not expire while a state of its object is before it: that state would
// be the last one of its key then, and the object would be there again. A bucket with one state
// of each object has nothing before a marker, so that the server may remove the marker by
// itself. In a bucket with a history, the feeder replaces a marker that is old enough, and all
// states before it, by one message that expires soon.
//
// Why not with the delete itself: the states of an object are to be read for as long as the
// bucket remembers its delete.
//
// A bucket with one state of each object may have had a history before. The markers from then
// do not expire, so the feeder replaces them too, until none is left.
//
// Why the bucket is read for it, and nothing is remembered: deletes of a day may be millions.

// serverForgets says that the server may remove delete markers. In a stream of events they stay.
func (b Bucket) serverForgets() bool { return !b.Events && b.History == 1 }

// purgedFor is how long the message is there that replaces an old marker and what is before
// it. Nothing depends on it: nothing of its key is left when it expires.
const purgedFor = time.Minute

// operationPurged is the operation of such a message.
const operationPurged = "PURGE"

// isPurge says that a message only replaces what a feeder wrote before.
func isPurge(h nats.Header) bool {
	return h.Get(headerOperation) == operationPurged && h.Get(HeaderType) != ""
}

// forgetEvery is a part of how long deletes are remembered.
const forgetEvery = 8

// keepForgetting removes what the bucket has of objects that were deleted long ago, until ctx
// ends, or until the server removes all markers by itself. What fails is done the next time.
func (s *Sink[T]) keepForgetting(ctx context.Context) {
	tick := time.NewTicker(s.bucket.Tombstones / forgetEvery)
	defer tick.Stop()
	for {
		if s.forget(ctx) && s.bucket.serverForgets() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// forget replaces old delete markers. It waits for nobody: while the bucket is read, commits
// are written, and the objects that they have are left alone. It says whether no marker is left
// that a feeder has to replace, except for those written since it began.
func (s *Sink[T]) forget(ctx context.Context) (done bool) {
	stream, err := s.js.Stream(ctx, s.bucket.stream())
	if err != nil {
		return false
	}
	info := stream.CachedInfo()
	before := info.TimeStamp.Add(-s.bucket.Tombstones)
	if !s.beginForgetting() {
		return false
	}
	defer s.endForgetting()
	var old []message
	var keys []tarn.Key
	flush := func() bool {
		written := s.replaceMarkers(ctx, keys, old)
		keys, old = keys[:0], old[:0]
		return written
	}
	done = true
	err = s.walk(ctx, true, func(key string, r record, pending uint64) bool {
		name, ok := s.objectKey(key)
		is := stateOf(name, r.header)
		marker := ok && is.deleted && !is.foreign && !isPurge(r.header)
		expires := r.header.Get(headerTTL) != ""
		switch {
		case !marker, expires && s.bucket.serverForgets():
		case expires, r.time.Before(before):
			// One that the server removes soon is of an older version, or of a shorter history.
			keys, old = append(keys, name), append(old, s.purge(key, is))
		default:
			done = false
		}
		if len(old) >= s.batchSize-1 && !flush() {
			done = false
			return false
		}
		return pending > 0 && r.sequence < info.State.LastSeq // else it was written since
	})
	return err == nil && (len(old) == 0 || flush()) && done
}

// purge is the message that replaces all messages of an object.
func (s *Sink[T]) purge(key string, is state) message {
	m := message{subject: s.bucket.prefix() + key, header: header{
		{headerOperation, operationPurged}, {headerRollup, "sub"}, {headerTTL, purgedFor.String()}, {HeaderType, "delete"},
	}}
	m.header.escaped(HeaderVersion, string(is.Version))
	m.header.escaped(HeaderEpoch, is.epoch)
	return m
}

// beginForgetting says whether the bucket may be written: it has this sink's last commit.
// From now on touched has the objects of all commits.
func (s *Sink[T]) beginForgetting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.quiet() {
		return false
	}
	s.touched = map[tarn.Key]bool{}
	return true
}

func (s *Sink[T]) endForgetting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = nil
}

// quiet says that no commit is under way, or has failed.
func (s *Sink[T]) quiet() bool {
	return s.known && !s.replaced && !s.unsettled && s.pending == "" && !s.at.Incomplete
}

// replaceMarkers writes messages that replace those of some keys, without the keys that were
// written meanwhile. It says whether to go on.
func (s *Sink[T]) replaceMarkers(ctx context.Context, keys []tarn.Key, messages []message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.quiet() {
		return false
	}
	var left []message
	for i, m := range messages {
		if !s.touched[keys[i]] {
			left = append(left, m)
		}
	}
	if len(left) == 0 {
		return true
	}
	return s.write(ctx, left, s.at.Checkpoint) == nil
}

// touch records the objects of a commit while old markers are looked for.
func (s *Sink[T]) touch(changes []tarn.Change[T]) {
	if s.touched == nil {
		return
	}
	for _, c := range changes {
		s.touched[c.Key] = true
	}
}
