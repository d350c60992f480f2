package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/reasons"
	"github.com/tarnproject/tarn/internal/usercall"
	"github.com/tarnproject/tarn/kube/wire"
)

// Source is a collection of an API server, as a [tarn.Source].
//
//   - Bodies are cut into objects as they arrive and decoded by several goroutines.
//     All of them have ended when List returns or the stream is closed, unless the
//     transport ignores that a read was cancelled. Only a few blocks of a body are
//     held, whatever its length.
//   - Objects are read-only: equal parts of them are the same memory.
//   - An object that cannot be decoded, is too long, or of another kind, is a bad
//     object; the rest is delivered.
//   - Every request is made once. Errors have a [tarn.Reason] and the API's own
//     error inside.
type Source[T any] struct {
	client     *Client
	collection Collection
	codec      codec[T]
	decoding   wire.Options
	protobuf   bool
	maxItem    int
	decoded    *decodeCounter
	// shard is nil if the source reads all objects.
	shard *shardReader
}

// SourceOptions configure a [Source]. The zero value is a good choice.
type SourceOptions struct {
	// Drop names fields that are left out before decoding, by their path in JSON:
	// "metadata.managedFields".
	Drop []string
	// UnsafeSharedMetadata lets objects share labels, annotations, owner references
	// and finalizers. It saves some 700 bytes for each object. A program that
	// writes to one of them by mistake then changes other objects too, and crashes
	// if another goroutine reads the same map.
	UnsafeSharedMetadata bool
	// Unshared makes objects that share nothing, so that the caller may change
	// them.
	Unshared bool
	// MaxItem is the size limit of an object, in bytes on the wire; DefaultMaxItem
	// if 0. A longer one is a bad object.
	MaxItem int
	// SetKind gives typed objects and metadata the apiVersion and kind of the
	// collection. Without it they have none, as from client-go.
	SetKind bool
	// Shard narrows the collection to one shard; nil means all objects.
	Shard *Sharding
	// shard is the reader of Shard, if the source is one of a replica.
	shard *shardReader
}

// shardReader returns the reader of Shard, nil if there is none.
func (o SourceOptions) shardReader() *shardReader {
	if o.shard != nil {
		return o.shard
	}
	return newShardReader(o.Shard)
}

// NewSource returns the source of a collection. T is the objects' type, or any.
func NewSource[T any](client *Client, c Collection, opts SourceOptions) (*Source[T], error) {
	if client == nil {
		return nil, errors.New("kube: a source needs a client")
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if want := reflect.TypeFor[T](); !c.Object.AssignableTo(want) {
		return nil, fmt.Errorf("kube: %s: its objects are %v, not %v", c, c.Object, want)
	}
	decoding := wire.Options{Pool: client.pool, SharedMetadata: opts.UnsafeSharedMetadata, Drop: opts.Drop}
	if opts.Unshared {
		decoding.Pool = nil
	}
	decoder, err := wire.NewDecoder(c.Object, decoding)
	if err != nil {
		return nil, fmt.Errorf("kube: %s: %w", c, err)
	}
	s := &Source[T]{
		client:     client,
		collection: c,
		codec:      codec[T]{wire: decoder, kinds: kindFilterOf(c), itemKinds: client.direct},
		decoding:   decoding,
		protobuf:   decoder.HasProtobuf(),
		maxItem:    opts.MaxItem,
		decoded:    &decodeCounter{parent: &client.decoded},
		shard:      opts.shardReader(),
	}
	if s.maxItem <= 0 {
		s.maxItem = DefaultMaxItem
	}
	if opts.SetKind {
		s.codec.stamp.APIVersion, s.codec.stamp.Kind = c.Kind.ToAPIVersionAndKind()
	}
	return s, nil
}

// ShareParts sets, before the first request, whether objects may share parts,
// unless the options forbid it. They must not if each is to be changed.
func (s *Source[T]) ShareParts(on bool) {
	if s.codec.encoding != nil {
		return // the caller's objects
	}
	decoding := s.decoding
	if !on {
		decoding.Pool = nil
	}
	if decoder, err := wire.NewDecoder(s.collection.Object, decoding); err == nil { // it worked for the source itself
		s.codec.wire = decoder
	}
}

// Unshared returns a source of the same collection and options whose objects share
// nothing with others: a stray write to a shared part does not show in them, and
// they may be changed.
func (s *Source[T]) Unshared() *Source[T] {
	unshared := *s
	unshared.ShareParts(false)
	return &unshared
}

// Collection is what the source reads.
func (s *Source[T]) Collection() Collection { return s.collection }

// List reads one page.
func (s *Source[T]) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[T], error) {
	return s.list(ctx, q, nil)
}

// StreamList reads one page, and gives its items to take while they arrive.
func (s *Source[T]) StreamList(ctx context.Context, q tarn.ListQuery, take func(items []T)) (tarn.Page[T], error) {
	return s.list(ctx, q, take)
}

func (s *Source[T]) list(ctx context.Context, q tarn.ListQuery, take func(items []T)) (tarn.Page[T], error) {
	if q.Continue == "" {
		s.begin(q.Afresh)
	}
	of := s.collection
	if q.Key != "" {
		of = of.only(q.Key)
	}
	options := metav1.ListOptions{ResourceVersion: string(q.AtLeast), Limit: q.Limit, Continue: q.Continue}
	if q.Continue != "" {
		// The token implies the version.
		options.ResourceVersion = ""
	} else if q.Exact {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	request, err := s.request(ctx, of, options)
	if err != nil {
		return tarn.Page[T]{}, s.failed(ctx, "list", err)
	}
	if q.AtLeast == tarn.Latest && q.Limit == 1 && q.Continue == "" {
		// This list asks for the newest version. With a Tweak that asks for version 0, a server
		// that lags would answer, and the source would seem to have gone back in time.
		request.options.ResourceVersion, request.options.ResourceVersionMatch, request.options.Limit = "", "", 1
	}
	body := &countingBody{}
	defer s.client.observe(ctx, request, time.Now(), body)
	resp, err := s.client.get(ctx, request)
	if err != nil {
		return tarn.Page[T]{}, s.failed(ctx, "list", err)
	}
	body.ReadCloser, resp.body = resp.body, body
	page, given, err := s.readBody(ctx, resp, heldBy(q.Held), take)
	if err == nil && page.Continue != "" && page.Continue == q.Continue {
		return tarn.Page[T]{}, fmt.Errorf("the list of %s does not advance: a page leads to itself, by the token %.100q; does a proxy keep old answers?", s.collection, q.Continue)
	}
	if page.Continue == "" && given+len(page.Items) > 1 {
		s.client.pool.Settle()
	}
	return page, err
}

// readBody reads a page, and returns how many items it gave to take. It returns soon after ctx
// has ended, although a body may neither end then nor when it is closed: that one is left
// behind, and what still comes of it is dropped.
func (s *Source[T]) readBody(ctx context.Context, resp *response, held wire.Held, take func(items []T)) (page tarn.Page[T], given int, err error) {
	var mu sync.Mutex
	left := false
	if inner := take; inner != nil {
		take = func(items []T) {
			mu.Lock()
			defer mu.Unlock()
			if !left {
				given += len(items)
				inner(items)
			}
		}
	}
	page, err = usercall.Do(ctx, "transport", func() (tarn.Page[T], error) {
		defer resp.body.Close()
		defer context.AfterFunc(ctx, func() { closeBody(ctx, resp.body) })() // the transport may have lost the context
		return s.readPage(ctx, resp, held, take)
	}, nil)
	mu.Lock()
	defer mu.Unlock()
	left = true
	return page, given, err
}

// Watch opens a stream.
func (s *Source[T]) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[T], error) {
	s.begin(q.Afresh)
	if q.Held != nil && s.codec.wire != nil {
		s.codec.wire.ForgetAbove(2*q.Held.Len() + spareStates)
	}
	options := metav1.ListOptions{
		Watch:               true,
		ResourceVersion:     string(q.From),
		AllowWatchBookmarks: true,
		TimeoutSeconds:      ptr.To(int64(q.Timeout.Seconds())),
	}
	if q.Initial {
		options.SendInitialEvents = ptr.To(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	if q.Initial {
		s.askForShards(ctx)
	}
	request, err := s.request(ctx, s.collection, options)
	if err != nil {
		return nil, s.failed(ctx, "watch", err)
	}
	life, cancel := context.WithCancel(ctx)
	resp, err := s.client.get(life, request)
	if err != nil {
		cancel()
		err = s.failed(ctx, "watch", err)
		switch {
		case q.Initial && reasons.RefusesWatchList(err):
			err = tarn.Because(tarn.ReasonNoWatchList, 0, err)
		case ctx.Err() == nil && utilnet.IsTimeout(err):
			// By a time limit of the config or of the transport. Some proxies pass on the head
			// of an answer with the first event, so the collection may just be quiet.
			err = tarn.Because(tarn.ReasonLost, 0, err)
		}
		return nil, err
	}
	resp.filter.watching(&s.client.shards, s.collection.Resource)
	return s.newStream(life, cancel, resp, q), nil
}

// begin prepares for a read. With afresh it reuses nothing that a program may have
// written to.
func (s *Source[T]) begin(afresh bool) {
	if pool := s.decoding.Pool; afresh && pool != nil {
		pool.Verify()
	}
}

// heldBy finds objects in the replica that holds them.
func heldBy(h tarn.Holder) wire.Held {
	if h == nil {
		return nil
	}
	return func(namespace, name string) any {
		object, _ := h.Held(keyOf(namespace, name))
		return object
	}
}

// request completes a request. A panic of the collection's Tweak is an error, or ends the
// process, as utilruntime is configured.
func (s *Source[T]) request(ctx context.Context, of Collection, options metav1.ListOptions) (request, error) {
	r := request{collection: of, protobuf: s.protobuf, filter: s.shard.filter()}
	if of.Tweak == nil {
		r.options = of.options(options, false)
		return r, nil
	}
	var err error
	r.options, err = usercall.Do(ctx, "function that changes the options of requests", func() (metav1.ListOptions, error) {
		// client-go's factories do not show theirs whether it is a watch, and its
		// NewFilteredListWatchFromClient does.
		return of.options(options, s.client.direct), nil
	}, nil)
	return r, err
}

// Maintain verifies the objects of a copy, which share memory: see [wire.Verifier].
func (s *Source[T]) Maintain(ctx context.Context, held tarn.Copy[T]) {
	if s.codec.wire == nil {
		return
	}
	wire.Verifier[T]{Pool: s.client.pool, Decoder: func() *wire.Decoder { return s.codec.wire }}.Run(ctx, held)
}

// Describe reads an object's identity. It works on anything with metadata, since a
// transform may return any type.
func (s *Source[T]) Describe(object T) (tarn.Meta, error) {
	if e := s.codec.encoding; e != nil {
		return e.Describe(object)
	}
	return describe(object)
}

func describe(object any) (tarn.Meta, error) {
	var m metav1.Object
	switch o := object.(type) {
	case nil:
		return tarn.Meta{}, errors.New("the object is nil")
	case metav1.Object:
		if v := reflect.ValueOf(o); v.Kind() == reflect.Pointer && v.IsNil() {
			return tarn.Meta{}, errors.New("the object is nil")
		}
		m = o
	default:
		var err error
		if m, err = meta.Accessor(o); err != nil {
			return tarn.Meta{}, fmt.Errorf("%T has no metadata: %w", object, err)
		}
	}
	described := tarn.Meta{Version: tarn.Version(m.GetResourceVersion()), UID: string(m.GetUID())}
	name, namespace := m.GetName(), m.GetNamespace()
	if name == "" {
		return described, errors.New("the object has no name")
	}
	described.Key = keyOf(namespace, name)
	return described, nil
}

func keyOf(namespace, name string) tarn.Key {
	if namespace == "" {
		return tarn.Key(name)
	}
	return tarn.Key(namespace + "/" + name)
}
