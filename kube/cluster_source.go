package kube

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tarnproject/tarn"
)

// InCluster returns a source whose keys begin with the name of a cluster, so that objects
// of several clusters can be in one copy: "east/kube-system/coredns". The objects
// themselves are not changed. Use it for the sections of a [tarn.NewReplicaOf], one for
// each cluster, with the prefix of [ClusterPrefix] and [tarn.Section.Independent] set.
//
// The clients of all clusters should have the same pool, see [WithPool]: clusters of one
// owner have many equal parts.
func InCluster[T any](cluster string, source tarn.Source[T]) (tarn.Source[T], error) {
	if err := CheckCluster(cluster); err != nil {
		return nil, err
	}
	return &clusterSource[T]{source, ClusterPrefix(cluster)}, nil
}

// maxClusterName leaves room for a name where the name of a directory may have 255 bytes.
const maxClusterName = 253

// CheckCluster returns an error for a name that a cluster cannot have in keys, columns and
// labels of metrics.
func CheckCluster(name string) error {
	switch {
	case name == "" || name == "." || name == ".." || strings.Contains(name, "/"):
		return fmt.Errorf("kube: %q cannot be the name of a cluster: a name is neither empty nor made of one or two dots, and has no slash", name)
	case len(name) > maxClusterName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("kube: %.300q cannot be the name of a cluster: a name is text in UTF-8, has no control characters, and is %d bytes long at most", name, maxClusterName)
	}
	return nil
}

// ClusterPrefix is the prefix of the keys of a cluster's objects; see [InCluster].
func ClusterPrefix(cluster string) tarn.Key { return tarn.Key(cluster + "/") }

// SplitCluster splits a key of a copy of several clusters into the name of the cluster and
// the key that the object has there.
func SplitCluster(key tarn.Key) (cluster string, rest tarn.Key) {
	cluster, own, _ := strings.Cut(string(key), "/")
	return cluster, tarn.Key(own)
}

type clusterSource[T any] struct {
	tarn.Source[T]
	prefix tarn.Key
}

// Unwrap is the source of the cluster.
func (c *clusterSource[T]) Unwrap() tarn.Source[T] { return c.Source }

func (c *clusterSource[T]) Describe(object T) (tarn.Meta, error) {
	m, err := c.Source.Describe(object)
	if m.Key != "" {
		m.Key = c.prefix + m.Key
	}
	return m, err
}

func (c *clusterSource[T]) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[T], error) {
	page, err := c.Source.List(ctx, c.inside(q))
	c.name(page.Bad)
	return page, err
}

// StreamList hands over what the source hands over.
func (c *clusterSource[T]) StreamList(ctx context.Context, q tarn.ListQuery, take func([]T)) (tarn.Page[T], error) {
	page, err := tarn.StreamList(ctx, c.Source, c.inside(q), take)
	c.name(page.Bad)
	return page, err
}

// inside is a query in the terms of the cluster.
func (c *clusterSource[T]) inside(q tarn.ListQuery) tarn.ListQuery {
	q.Key = tarn.Key(strings.TrimPrefix(string(q.Key), string(c.prefix)))
	q.Held = c.held(q.Held)
	return q
}

func (c *clusterSource[T]) held(h tarn.Holder) tarn.Holder {
	if h == nil {
		return nil
	}
	return clusterHolder{h, c.prefix}
}

func (c *clusterSource[T]) name(bad []tarn.BadObject) {
	for i := range bad {
		if bad[i].Key != "" {
			bad[i].Key = c.prefix + bad[i].Key
		}
	}
}

func (c *clusterSource[T]) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[T], error) {
	q.Held = c.held(q.Held)
	stream, err := c.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return clusterStream[T]{stream, c.prefix}, nil
}

// Maintain has the source verify the objects of the cluster.
func (c *clusterSource[T]) Maintain(ctx context.Context, held tarn.Copy[T]) {
	if m, ok := c.Source.(tarn.Maintainer[T]); ok {
		m.Maintain(ctx, clusterCopy[T]{held, c.prefix})
	}
}

// Shard is that of the source of the cluster; nil if it has none.
func (c *clusterSource[T]) Shard() tarn.ShardReader {
	for source := c.Source; source != nil; {
		if s, ok := source.(tarn.Sharded); ok {
			if reader := s.Shard(); reader != nil {
				return clusterShard{reader, c.prefix}
			}
			return nil
		}
		wrapper, ok := source.(interface{ Unwrap() tarn.Source[T] })
		if !ok {
			return nil
		}
		source = wrapper.Unwrap()
	}
	return nil
}

// clusterShard tells the shard of an object by its namespace in the cluster.
type clusterShard struct {
	tarn.ShardReader
	prefix tarn.Key
}

func (s clusterShard) Begin() (has func(tarn.Meta) bool, within bool) {
	inside, within := s.ShardReader.Begin()
	if inside == nil {
		return nil, within
	}
	return func(m tarn.Meta) bool {
		m.Key = tarn.Key(strings.TrimPrefix(string(m.Key), string(s.prefix)))
		return inside(m)
	}, within
}

// clusterHolder holds the objects of a cluster under the keys that they have there.
type clusterHolder struct {
	tarn.Holder
	prefix tarn.Key
}

func (h clusterHolder) Held(key tarn.Key) (any, bool) { return h.Holder.Held(h.prefix + key) }

type clusterStream[T any] struct {
	tarn.Stream[T]
	prefix tarn.Key
}

func (s clusterStream[T]) Next(ctx context.Context, buf []tarn.Event[T]) (int, error) {
	n, err := s.Stream.Next(ctx, buf)
	for i := range buf[:n] {
		if bad := &buf[i].Bad; bad.Key != "" {
			bad.Key = s.prefix + bad.Key
		}
	}
	return n, err
}

// clusterCopy is the part of a copy that a cluster has, under the keys of the cluster.
//
// Why All removes the prefix, although most maintainers only repeat the keys: a cluster may
// have the name of one of its namespaces, so a key does not tell whether it has the prefix.
type clusterCopy[T any] struct {
	tarn.Copy[T]
	prefix tarn.Key
}

func (c clusterCopy[T]) All() iter.Seq2[tarn.Key, T] {
	return func(yield func(tarn.Key, T) bool) {
		for key, object := range c.Copy.All() {
			if !yield(key[len(c.prefix):], object) {
				return
			}
		}
	}
}

func (c clusterCopy[T]) Repair(damaged []tarn.Damage) {
	for i := range damaged {
		if damaged[i].Key != "" {
			damaged[i].Key = c.prefix + damaged[i].Key
		}
	}
	c.Copy.Repair(damaged)
}
