package kube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
)

// foreignEvery is how often an event of another shard is delivered as a bookmark, so that
// the copy notices that the stream advances: a shard may be quiet for long while its
// server sends what others need.
const foreignEvery = time.Second

// streamFilter drops the events of other shards, before they are queued. It belongs to the
// goroutine that reads the stream.
type streamFilter struct {
	*shardFilter
	// ordered says that events come in the order of their versions. Initial events do not.
	ordered bool
	// last is when an event was last let through for its version.
	last time.Time
	// lines says whether each event is on a line of its own.
	lines lineFormat
}

func newStreamFilter(f *shardFilter, q tarn.WatchQuery) *streamFilter {
	if f == nil {
		return nil
	}
	return &streamFilter{shardFilter: f, ordered: !q.Initial && q.From != tarn.Any && q.From != tarn.Latest}
}

// drops reports whether to drop an event. It lets one through now and then, marked.
func (s *streamFilter) drops(m media, f *frame) bool {
	if s == nil {
		return false
	}
	if !s.foreignFrame(m, *f) {
		s.ordered = s.ordered || isBookmark(m, *f) // the initial events end with one
		return false
	}
	if f.size == 0 && s.due() {
		s.last, f.foreign = time.Now(), true
		return false
	}
	return true
}

// due says that it is time to let an event of another shard through.
func (s *streamFilter) due() bool { return s.ordered && time.Since(s.last) >= foreignEvery }

func isBookmark(m media, f frame) bool {
	e, ok := openFrame(m, f)
	return ok && eventType(e.kind) == tarn.EventBookmark
}

// foreignEvent is an event of another shard as a bookmark.
func (s *Source[T]) foreignEvent(m media, n watchEvent) tarn.Event[T] {
	raw, _, _ := s.codec.inEnvelope(m, n.object) // it could be read before
	return tarn.Event[T]{Type: tarn.EventBookmark, Version: tarn.Version(excerptOf(m, raw).version)}
}

// selector is what a request is sent with.
func (f *shardFilter) selector() string {
	if f == nil {
		return ""
	}
	return f.set.Selector()
}

// watching records whether the server of a new watch is known to select by shard.
func (f *shardFilter) watching(support *shardSupport, resource schema.GroupVersionResource) {
	if f == nil {
		return
	}
	f.reader.byServer.Store(support.of(resource) == shardsServed)
	f.disproved = support.disprove(resource)
}

// sawForeign counts an object of another shard. It proves that the server does not select.
func (f *shardFilter) sawForeign() {
	f.reader.dropped.Add(1)
	if !f.reader.byServer.Load() {
		return
	}
	f.reader.byServer.Store(false)
	if f.disproved != nil {
		f.disproved()
	}
}

// noteEcho compares the selector that a list was sent with the one that the list says it
// has. A list with objects of other shards is not believed either.
func (s *Source[T]) noteEcho(resp *response, echo string, foreign int) {
	if resp.filter == nil {
		return
	}
	served := resp.shard != "" && echo == resp.shard && foreign == 0
	resp.filter.reader.byServer.Store(served)
	switch {
	case resp.shard == "": // it is known to be refused
	case served:
		s.client.shards.learn(s.collection.Resource, shardsServed)
	default:
		s.client.shards.learn(s.collection.Resource, shardsIgnored)
	}
}

// askForShards lists one object, to learn whether the server selects by shard: a stream
// does not say it. It does so once for each server and resource. A failure does not
// matter: without an echo the server is not believed.
func (s *Source[T]) askForShards(ctx context.Context) {
	if s.shard.filter() == nil || s.client.shards.of(s.collection.Resource) != shardsUnknown {
		return
	}
	request, err := s.request(ctx, s.collection, metav1.ListOptions{Limit: 1})
	if err != nil {
		return
	}
	resp, err := s.client.get(ctx, request)
	if err != nil {
		return
	}
	defer resp.body.Close()
	_, _ = s.readPage(ctx, resp, nil, func([]T) {})
}
