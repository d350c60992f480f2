package etcd

import (
	"encoding/json"
	"strconv"

	"github.com/tarnproject/tarn"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// An Entry is a key of etcd with its value.
type Entry[V any] struct {
	// Key is the key below the prefix.
	Key   tarn.Key
	Value V
	// Revision is that of the last write, or of the delete, and Created that of the
	// write that created the key.
	Revision, Created int64
	// Writes counts the writes since the key was created.
	Writes int64
	// Lease is the one that the key is deleted with, 0 if there is none.
	Lease int64
}

// A Decoder makes a value of the bytes under a key. It must not keep the bytes.
type Decoder[V any] func(data []byte) (V, error)

// JSON decodes values that are JSON.
func JSON[V any](data []byte) (value V, err error) {
	err = json.Unmarshal(data, &value)
	return value, err
}

// Text takes values as they are.
func Text(data []byte) (string, error) { return string(data), nil }

func (e *Entry[V]) meta() tarn.Meta {
	return tarn.Meta{Key: e.Key, Version: version(e.Revision), UID: strconv.FormatInt(e.Created, 10)}
}

func version(revision int64) tarn.Version { return tarn.Version(strconv.FormatInt(revision, 10)) }

// entry decodes a key and its value.
func (s *Source[V]) entry(kv *mvccpb.KeyValue) (*Entry[V], error) {
	value, err := s.decode(kv.Value)
	if err != nil {
		return nil, err
	}
	return &Entry[V]{
		Key: s.key(kv), Value: value,
		Revision: kv.ModRevision, Created: kv.CreateRevision, Writes: kv.Version, Lease: kv.Lease,
	}, nil
}

func (s *Source[V]) key(kv *mvccpb.KeyValue) tarn.Key { return tarn.Key(kv.Key[len(s.prefix):]) }

func (s *Source[V]) bad(kv *mvccpb.KeyValue, err error) tarn.BadObject {
	return tarn.BadObject{Key: s.key(kv), Version: version(kv.ModRevision), Err: err}
}
