package kube

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
)

// Encoding says how a program makes its own objects from the bytes that a server sends.
type Encoding[T any] struct {
	// Protobuf says which bytes Decode takes: the bare message of an object, or its JSON.
	Protobuf bool
	// Decode makes an object. It owns the bytes, and several goroutines call it.
	Decode func(raw []byte) (T, error)
	// Describe reads an object's identity, as [tarn.Source] says.
	Describe func(object T) (tarn.Meta, error)
}

// NewEncodedSource returns a source of objects in a form of the caller's, for programs that
// pass objects on as they came. It needs neither the Go type of the objects nor a pool.
func NewEncodedSource[T any](client *Client, c Collection, e Encoding[T], opts SourceOptions) (*Source[T], error) {
	switch {
	case client == nil:
		return nil, errors.New("kube: a source needs a client")
	case e.Decode == nil || e.Describe == nil:
		return nil, fmt.Errorf("kube: %s: an encoding needs functions to decode and to describe objects", c)
	case len(opts.Drop) > 0:
		return nil, fmt.Errorf("kube: %s: fields cannot be dropped from objects that are passed on as they came", c)
	}
	c.Object = reflect.TypeFor[T]()
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Source[T]{
		client:     client,
		collection: c,
		codec:      codec[T]{encoding: &e, kinds: kindFilterOf(c)},
		protobuf:   e.Protobuf,
		maxItem:    opts.MaxItem,
		decoded:    &decodeCounter{parent: &client.decoded},
		shard:      opts.shardReader(),
	}
	if s.maxItem <= 0 {
		s.maxItem = DefaultMaxItem
	}
	return s, nil
}

// object makes an object of a copy of the bytes, which are part of a buffer.
func (e *Encoding[T]) object(m media, raw []byte, t runtime.TypeMeta, kinds *kindFilter) (object T, silent bool, err error) {
	if m == mediaJSON {
		t = excerptOf(m, raw).TypeMeta
	}
	if err := kinds.foreign(t); err != nil {
		return object, false, err
	}
	if e.Protobuf != (m == mediaProtobuf) {
		return object, false, fmt.Errorf("%w: the answer is not in the format that was asked for", tarn.ErrUndecodable)
	}
	if object, err = e.Decode(bytes.Clone(raw)); err != nil {
		return object, false, fmt.Errorf("%w: %w", tarn.ErrUndecodable, err)
	}
	return object, t.Kind == "" || t.APIVersion == "", nil
}
