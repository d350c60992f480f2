package etcd_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/etcd"
	"github.com/tarnproject/tarn/internal/sim"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const modelPrefix = "/objects/"

// model is the server of the simulation behind the interfaces of etcd's client. A real etcd
// cannot be in a bubble of synctest, because its connections do not follow virtual time.
type model struct {
	clientv3.KV
	clientv3.Watcher
	server *sim.Server
}

// modelSource is an etcd source of the simulation's server.
func modelSource(server *sim.Server) tarn.Source[*sim.Object] {
	client := clientv3.NewCtxClient(context.Background())
	m := model{server: server}
	client.KV, client.Watcher = m, m
	source, err := etcd.NewSource(client, modelPrefix, etcd.JSON[sim.Object])
	if err != nil {
		panic(err)
	}
	return objects{source, server}
}

// Get answers a range at a revision, or now.
func (m model) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	op := clientv3.OpGet(key, options...)
	revision, state, err := m.at(ctx, op.Rev())
	if err != nil {
		return nil, err
	}
	found := &clientv3.GetResponse{Header: &pb.ResponseHeader{Revision: revision}}
	for _, o := range sorted(state) {
		kv := keyValue(o, 1)
		name := string(kv.Key)
		if name != key && (len(op.RangeBytes()) == 0 || name < key || name >= string(op.RangeBytes())) {
			continue
		}
		if op.Limit() > 0 && int64(len(found.Kvs)) == op.Limit() {
			found.More = true
			break
		}
		found.Kvs = append(found.Kvs, kv)
	}
	return found, nil
}

// at is the state at a revision, and the revision that the server has now.
func (m model) at(ctx context.Context, revision int64) (int64, sim.State, error) {
	past := m.server.Past()
	now := past[len(past)-1]
	switch {
	case revision == 0:
		return int64(now.Version), now.State, nil
	case revision > int64(now.Version):
		return 0, nil, rpctypes.ErrFutureRev
	}
	if _, err := m.server.Watch(ctx, tarn.WatchQuery{From: versionOf(revision)}); err != nil {
		return 0, nil, rpctypes.ErrCompacted
	}
	for _, moment := range slices.Backward(past) {
		if int64(moment.Version) <= revision {
			return int64(now.Version), moment.State, nil
		}
	}
	return 0, nil, rpctypes.ErrCompacted
}

// Watch follows the server as etcd's client does: when its connection breaks, it makes
// another one, and continues after the last revision that it was sent.
func (m model) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	responses := make(chan clientv3.WatchResponse)
	next := clientv3.OpGet(key, options...).Rev()
	go func() {
		defer close(responses)
		for ctx.Err() == nil {
			stream, err := m.server.Watch(ctx, tarn.WatchQuery{From: versionOf(next - 1), Timeout: time.Hour})
			if err == nil {
				err = m.follow(ctx, stream, &next, responses)
			}
			if tarn.ReasonOf(err) == tarn.ReasonExpired {
				send(ctx, responses, clientv3.WatchResponse{Canceled: true, CompactRevision: next})
				return
			}
			if !errors.Is(err, io.EOF) {
				return
			}
		}
	}()
	return responses
}

func (m model) follow(ctx context.Context, stream tarn.Stream[*sim.Object], next *int64, responses chan<- clientv3.WatchResponse) error {
	defer stream.Close()
	events := make([]tarn.Event[*sim.Object], 8)
	for {
		n, err := stream.Next(ctx, events)
		if err != nil {
			return err
		}
		response := clientv3.WatchResponse{Header: &pb.ResponseHeader{}}
		for _, e := range events[:n] {
			revision := revisionOf(e)
			response.Header.Revision = revision
			*next = revision + 1
			if e.Type != tarn.EventBookmark {
				response.Events = append(response.Events, changed(e, revision))
			}
		}
		if !send(ctx, responses, response) {
			return context.Cause(ctx)
		}
	}
}

func send(ctx context.Context, to chan<- clientv3.WatchResponse, r clientv3.WatchResponse) bool {
	select {
	case to <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// RequestProgress does nothing: the server tells a quiet watch its revision by itself.
func (m model) RequestProgress(context.Context) error { return nil }

func (m model) Close() error { return nil }

// changed is an event as etcd has it.
func changed(e tarn.Event[*sim.Object], revision int64) *clientv3.Event {
	switch e.Type {
	case tarn.EventAdded:
		return &clientv3.Event{Type: mvccpb.PUT, Kv: keyValue(e.Object, revision)}
	case tarn.EventDeleted:
		before := keyValue(e.Object, 1)
		return &clientv3.Event{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: before.Key, ModRevision: revision}, PrevKv: before}
	}
	return &clientv3.Event{Type: mvccpb.PUT, Kv: keyValue(e.Object, 1)}
}

func keyValue(o *sim.Object, created int64) *mvccpb.KeyValue {
	value, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	revision, _ := strconv.ParseInt(string(o.Version), 10, 64)
	return &mvccpb.KeyValue{Key: []byte(modelPrefix + o.Name), Value: value, CreateRevision: created, ModRevision: revision}
}

func revisionOf(e tarn.Event[*sim.Object]) int64 {
	v := e.Version
	if e.Type != tarn.EventBookmark {
		v = e.Object.Version
	}
	n, _ := strconv.ParseInt(string(v), 10, 64)
	return n
}

func versionOf(revision int64) tarn.Version { return tarn.Version(strconv.FormatInt(revision, 10)) }

func sorted(state sim.State) (all []*sim.Object) {
	for _, o := range state {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *sim.Object) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// objects is an etcd source whose entries are shown as the objects of the simulation.
type objects struct {
	entries *etcd.Source[sim.Object]
	server  *sim.Server
}

func (s objects) List(ctx context.Context, q tarn.ListQuery) (page tarn.Page[*sim.Object], err error) {
	found, err := s.entries.List(ctx, q)
	page.Version, page.Continue, page.Bad = found.Version, found.Continue, found.Bad
	for _, e := range found.Items {
		page.Items = append(page.Items, object(e))
	}
	return page, err
}

func (s objects) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*sim.Object], error) {
	stream, err := s.entries.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return objectStream{stream}, nil
}

func (s objects) Describe(o *sim.Object) (tarn.Meta, error) { return s.server.Describe(o) }

type objectStream struct {
	tarn.Stream[*etcd.Entry[sim.Object]]
}

func (s objectStream) Next(ctx context.Context, buf []tarn.Event[*sim.Object]) (int, error) {
	events := make([]tarn.Event[*etcd.Entry[sim.Object]], len(buf))
	n, err := s.Stream.Next(ctx, events)
	for i, e := range events[:n] {
		buf[i] = tarn.Event[*sim.Object]{Type: e.Type, Version: e.Version, InitialEnd: e.InitialEnd, Bad: e.Bad, Object: object(e.Object)}
	}
	return n, err
}

// object is an entry's value, at the entry's revision.
func object(e *etcd.Entry[sim.Object]) *sim.Object {
	if e == nil {
		return nil
	}
	o := e.Value
	o.Version = versionOf(e.Revision)
	return &o
}
