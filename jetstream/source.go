package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tarnproject/tarn"
)

// Source reads a bucket that a [Sink] feeds, as a [tarn.Source]: a copy of a copy. Versions
// are those of the origin.
//
//   - A list shows the state at a checkpoint. While a large state is written it waits.
//   - A stream hands over commits, each followed by a bookmark at its position.
//   - A commit that does not follow from the one before ends a stream with
//     [tarn.ReasonExpired]: after a gap or a rewind of the origin, after deletes that
//     were inferred, and if states were replaced before they were read, because the
//     bucket keeps too few. The list that follows becomes a gap for the followers of the
//     copy.
//   - Objects that the feeder could not write are bad objects here too.
//
// The copy that the bucket has must have one section. A mirror of a bucket can be read too.
type Source[T any] struct {
	bucketClient
	codec Codec[T]
	// checkEvery is checkInterval, except in tests.
	checkEvery time.Duration

	mu sync.Mutex
	// found says that it is known whether the bucket is a mirror.
	found bool
	// marks are the positions whose place in the bucket is known, oldest first.
	marks []mark
}

// mark is where a position is in the bucket.
type mark struct {
	epoch    string
	version  tarn.Version
	sequence uint64
	serial   uint64
	objects  uint64
	line     string
}

// keptMarks is how many marks are kept. A reflector watches from the newest, or the one
// before.
const keptMarks = 64

// NewSource reads a bucket. It uses only Name and Events of the bucket. The caller
// owns the connection and closes it after the replica has stopped.
func NewSource[T any](js jetstream.JetStream, bucket Bucket, codec Codec[T]) (*Source[T], error) {
	if js == nil || codec == nil {
		return nil, errors.New("jetstream: a source needs a connection and a codec")
	}
	bucket, err := bucket.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Source[T]{bucketClient: bucketClient{js: js, bucket: bucket}, codec: codec, checkEvery: checkInterval}, nil
}

// Describe is the codec's.
func (s *Source[T]) Describe(object T) (tarn.Meta, error) { return s.codec.Describe(object) }

// restOfList is the token of the page that has all items: the first page of a probe has none.
const restOfList = "all"

// List reads the bucket.
func (s *Source[T]) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[T], error) {
	var page tarn.Page[T]
	err := s.findOrigin(ctx)
	if err != nil {
		return page, s.explain("list", err)
	}
	switch {
	case q.Key != "":
		page, err = s.one(ctx, q.Key)
	case q.Limit == 1 && q.Continue == "":
		var at placed
		if at, err = s.checkpoint(ctx); err == nil {
			page.Continue = restOfList
			page.Version, err = s.versionOf(at)
		}
	default:
		page, err = s.all(ctx)
	}
	if err != nil {
		return tarn.Page[T]{}, s.explain("list", err)
	}
	if page.Version.OlderThan(q.AtLeast) {
		return tarn.Page[T]{}, tarn.Because(tarn.ReasonTooNew, 0, fmt.Errorf("jetstream: list bucket %s: it is at version %s, and not yet at %s", s.bucket.Name, page.Version, q.AtLeast))
	}
	return page, nil
}

// findOrigin asks once whether the bucket is a mirror of another one.
func (s *Source[T]) findOrigin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found {
		return nil
	}
	stream, err := s.js.Stream(ctx, s.bucket.stream())
	if err != nil {
		return err
	}
	if mirror := stream.CachedInfo().Config.Mirror; mirror != nil {
		origin := s.bucket
		if origin.Name = mirror.Name; !origin.Events {
			origin.Name = strings.TrimPrefix(mirror.Name, "KV_")
		}
		s.mirrors = &origin
	}
	s.found = true
	return nil
}

// one reads one object.
func (s *Source[T]) one(ctx context.Context, key tarn.Key) (page tarn.Page[T], err error) {
	at, err := s.checkpoint(ctx)
	if err != nil {
		return page, err
	}
	if page.Version, err = s.versionOf(at); err != nil {
		return page, err
	}
	r, found, err := s.last(ctx, escapeKey(key))
	if is := stateOf(key, r.header); err != nil || !found || is.deleted && !is.foreign {
		return page, err
	}
	s.take(&page, key, r)
	return page, nil
}

// all reads everything at one checkpoint. Each batch of the feeder is atomic and ends with a
// checkpoint; so when nothing follows a checkpoint, everything before it has been read.
func (s *Source[T]) all(ctx context.Context) (page tarn.Page[T], err error) {
	objects, bad := map[tarn.Key]record{}, map[string]BadObject{}
	var at placed
	var broken error
	settled := false // nothing of a feeder follows the last checkpoint
	err = s.walk(ctx, false, func(key string, r record, pending uint64) bool {
		name, ok := s.objectKey(key)
		if ok && stateOf(name, r.header).foreign {
			objects[name] = r
			return pending > 0 || !settled
		}
		settled = false
		switch {
		case ok && stateOf(name, r.header).deleted:
			delete(objects, name)
		case ok:
			objects[name] = r
		case key == checkpointKey:
			at = placed{sequence: r.sequence, time: r.time}
			if r.header.Get(headerOperation) == "" {
				at.Checkpoint, broken = decodeCheckpoint(r.data)
			}
			settled = !at.Incomplete
			return broken == nil && (pending > 0 || at.Incomplete && ctx.Err() == nil)
		case strings.HasPrefix(key, badPrefix):
			var b BadObject
			if json.Unmarshal(r.data, &b) == nil {
				bad[key] = b
			} else {
				delete(bad, key)
			}
		}
		return true
	})
	if err = errors.Join(err, broken); err != nil {
		return page, err
	}
	if page.Version, err = s.versionOf(at); err != nil {
		return page, err
	}
	for _, b := range bad {
		page.Bad = append(page.Bad, tarn.BadObject{Key: tarn.Key(b.Key), Version: tarn.Version(b.Version), Err: errors.New(b.Error)})
		delete(objects, tarn.Key(b.Key))
	}
	for key, r := range objects {
		s.take(&page, key, r)
		delete(objects, key) // what is decoded need not be held twice
	}
	s.remember(markOf(at))
	return page, nil
}

// errForeign says that the origin's state of an object is not in the bucket.
var errForeign = errors.New("another client has written or deleted it in the bucket; the feeder writes it again when the feeder restarts, or the object changes")

// take decodes an object into a page.
func (s *Source[T]) take(page *tarn.Page[T], key tarn.Key, r record) {
	if stateOf(key, r.header).foreign {
		page.Bad = append(page.Bad, tarn.BadObject{Key: key, Err: errForeign})
		return
	}
	object, err := s.codec.Decode(r.data)
	if err != nil {
		page.Bad = append(page.Bad, tarn.BadObject{Key: key, Version: stateOf(key, r.header).Version, Err: fmt.Errorf("%w: %w", tarn.ErrUndecodable, err)})
		return
	}
	page.Items = append(page.Items, object)
}

// versionOf is the version of the origin at a checkpoint.
func (s *Source[T]) versionOf(at placed) (tarn.Version, error) {
	switch {
	case len(at.Positions) == 0:
		return "", tarn.Because(tarn.ReasonBusy, unfedWait, errors.New("nobody has fed it yet"))
	case at.Incomplete:
		return "", tarn.Because(tarn.ReasonBusy, unfedWait, fmt.Errorf("%s is writing a large state to it", at.Feeder))
	case len(at.Positions) > 1:
		return "", fmt.Errorf("it is a copy in %d sections, each with its own version, and only a copy in one section can be read as a source", len(at.Positions))
	}
	return tarn.Version(at.Positions[0].Version), nil
}

// unfedWait is when to look again whether a bucket has a state.
const unfedWait = time.Second

func markOf(at placed) mark {
	p := at.Positions[0]
	return mark{p.Epoch, tarn.Version(p.Version), at.sequence, at.Serial, at.Objects, at.Line}
}

// remember keeps a mark.
func (s *Source[T]) remember(m mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.marks); n > 0 && (s.marks[n-1].epoch != m.epoch || m.sequence < s.marks[n-1].sequence) {
		s.marks = nil
	}
	if len(s.marks) >= keptMarks {
		s.marks = slices.Delete(s.marks, 0, 1)
	}
	s.marks = append(s.marks, m)
}

// find returns the newest mark that is not newer than a version.
func (s *Source[T]) find(v tarn.Version) (mark, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(s.marks) {
		if m.version == v || m.version.OlderThan(v) {
			return m, true
		}
	}
	return mark{}, false
}

// explain says what failed, and why, as the engine classifies it.
func (s *Source[T]) explain(doing string, err error) error {
	reason := tarn.ReasonOf(err)
	if reason == tarn.ReasonUnknown {
		reason = reasonOf(err)
	}
	return tarn.Because(reason, tarn.RetryAfter(err), fmt.Errorf("jetstream: %s bucket %s: %w", doing, s.bucket.Name, err))
}
