package wired

import (
	"reflect"
	"unsafe"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
)

// ClientOf returns a client for the requests of a REST client; nil without one.
//
// Parts are shared in the pool of the process, because programs often have several factories.
func ClientOf(own rest.Interface) *kube.Client {
	known, _ := own.(*rest.RESTClient)
	client, err := kube.ClientOf(known, kube.WithPool(wire.Shared()))
	if err != nil {
		return nil
	}
	return client
}

// RESTClientOf returns the REST client of client-go's dynamic or metadata client. It returns
// nil for any other client, such as a fake one, and if a version of client-go keeps it
// elsewhere. Then informers call the methods of the client, as client-go's do.
//
// These clients have no method that returns it, so it is read from their only field, after a
// check of its name and type. Only the cost depends on it: requests and objects are the same.
func RESTClientOf(client any) rest.Interface {
	switch client.(type) {
	case *dynamic.DynamicClient, *metadata.Client:
	default:
		return nil
	}
	of := reflect.ValueOf(client)
	if of.IsNil() {
		return nil
	}
	field := of.Elem().FieldByName("client")
	if !field.IsValid() {
		return nil
	}
	switch at := unsafe.Pointer(field.UnsafeAddr()); field.Type() {
	case reflect.TypeFor[rest.Interface]():
		return *(*rest.Interface)(at)
	case reflect.TypeFor[*rest.RESTClient]():
		return *(**rest.RESTClient)(at)
	default:
		return nil
	}
}
