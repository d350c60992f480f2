package share_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/share"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// written collects the memory that a program may write to, with the path to it.
func written(path string, v reflect.Value, into map[unsafe.Pointer]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Type().Elem().Size() > 0 {
			into[v.UnsafePointer()] = path
			written(path, v.Elem(), into)
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Size() > 0 {
			into[v.UnsafePointer()] = path
		}
		for i := range v.Len() {
			written(path+"[]", v.Index(i), into)
		}
	case reflect.Map:
		if !v.IsNil() {
			into[v.UnsafePointer()] = path
		}
		for i := v.MapRange(); i.Next(); {
			written(path+"{}", i.Value(), into)
		}
	case reflect.Interface:
		if !v.IsNil() {
			written(path, v.Elem(), into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				written(path+"."+f.Name, v.Field(i), into)
			}
		}
	}
}

// The program that gave an object may change it later. No other object has any of its memory.
func TestShareKeepsNothingOfGivers(t *testing.T) {
	type deep struct {
		Maps  map[string]map[string][]string
		Named map[string]*struct{ Text string }
		Trees map[string]any
		Lists []any
	}
	long := func(s string) string { return strings.Repeat(s, 20) }
	objects := []func() any{
		func() any {
			return &deep{
				Maps:  map[string]map[string][]string{"a": {"b": {long("c"), "d"}}},
				Named: map[string]*struct{ Text string }{"a": {long("e")}},
				Trees: map[string]any{"a": []any{long("f"), map[string]any{"g": long("h")}}},
				Lists: []any{map[string]any{"a": []any{long("i")}}},
			}
		},
		func() any {
			return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": long("b")}},
				"spec": map[string]any{"list": []any{long("c"), map[string]any{"d": []any{long("e")}}}}}}
		},
		func() any { return &corev1.Secret{Data: map[string][]byte{"a": []byte(long("b"))}} },
	}
	for i, kind := range wiretest.Some(allKinds()) {
		objects = append(objects, func() any {
			object, err := scheme.Scheme.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			fillAny(int64(i)).Fill(object)
			return object
		})
	}
	for _, made := range objects {
		sharer := share.New(pool.New(), pool.Options{})
		given := map[unsafe.Pointer]string{}
		var kept, states []any
		for n := range 4 {
			object := made()
			kept = append(kept, object)
			var like any
			if n == 3 {
				like = states[2] // the next state of the third object
			}
			shared := sharer.ShareLike(object, like)
			if states = append(states, shared); n < 3 {
				found := map[unsafe.Pointer]string{}
				written(fmt.Sprintf("%T", shared), reflect.ValueOf(shared), found)
				for at, path := range found {
					if other, ok := given[at]; ok {
						t.Errorf("%s has the memory of another given object: its %s", path, other)
					}
				}
			}
			written(fmt.Sprintf("%T", object), reflect.ValueOf(object), given)
		}
		if !reflect.DeepEqual(states[3], kept[3]) {
			t.Errorf("%T has changed", kept[3])
		}
	}
}
