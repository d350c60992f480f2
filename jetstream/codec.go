package jetstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// JSON is a codec that writes objects as JSON.
func JSON[T any](describe func(T) (tarn.Meta, error)) Codec[T] { return jsonCodec[T]{describe} }

// Objects is the codec of Kubernetes objects: they are written as JSON.
func Objects[T metav1.Object]() Codec[T] {
	return objectCodec[T]{jsonCodec[T]{describeObject[T]}}
}

type objectCodec[T metav1.Object] struct{ jsonCodec[T] }

// sharing is a codec that writes what a [wire.JSONEncoder] writes.
type sharing interface{ sharesJSON() }

func (objectCodec[T]) sharesJSON() {}

// Append writes what json.Marshal would, in less time.
func (c objectCodec[T]) Append(buf []byte, object T) ([]byte, error) {
	return wire.AppendJSON(buf, object)
}

var _ Versioner[*metav1.PartialObjectMetadata] = objectCodec[*metav1.PartialObjectMetadata]{}

// WithVersion copies the object.
func (c objectCodec[T]) WithVersion(object T, v tarn.Version) (T, error) {
	source, ok := any(object).(runtime.Object)
	if !ok {
		return object, fmt.Errorf("jetstream: a %T cannot be copied", object)
	}
	copied, ok := source.DeepCopyObject().(T)
	if !ok {
		return object, fmt.Errorf("jetstream: the copy of a %T is another type", object)
	}
	copied.SetResourceVersion(string(v))
	return copied, nil
}

func describeObject[T metav1.Object](object T) (tarn.Meta, error) {
	if v := reflect.ValueOf(object); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return tarn.Meta{}, errors.New("jetstream: the object is nil")
	}
	name := object.GetName()
	if name == "" {
		return tarn.Meta{}, errors.New("jetstream: an object without a name")
	}
	key := tarn.Key(name)
	if namespace := object.GetNamespace(); namespace != "" {
		key = tarn.Key(namespace + "/" + name)
	}
	return tarn.Meta{Key: key, Version: tarn.Version(object.GetResourceVersion()), UID: string(object.GetUID())}, nil
}

type jsonCodec[T any] struct {
	describe func(T) (tarn.Meta, error)
}

func (c jsonCodec[T]) Append(buf []byte, object T) ([]byte, error) {
	var data []byte
	var err error
	if own, ok := any(object).(json.Marshaler); ok { // json.Marshal would read its result again
		data, err = own.MarshalJSON()
		data = bytes.TrimSpace(data)
	} else {
		data, err = json.Marshal(object)
	}
	if buf == nil {
		return data, err
	}
	return append(buf, data...), err
}

func (c jsonCodec[T]) Decode(data []byte) (object T, err error) {
	return object, json.Unmarshal(data, &object)
}

func (c jsonCodec[T]) Describe(object T) (tarn.Meta, error) { return c.describe(object) }
