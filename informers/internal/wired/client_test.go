package wired

import (
	"testing"

	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
)

// This version of client-go keeps the REST client where it is expected. Otherwise everything
// still works, but informers of dynamic and metadata clients cost as much as client-go's.
func TestRESTClientOf(t *testing.T) {
	config := &rest.Config{Host: "http://lake:8080/deep"}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []any{untyped, partial} {
		own, ok := RESTClientOf(client).(*rest.RESTClient)
		if !ok || own == nil {
			t.Errorf("the REST client of a %T was not found", client)
			continue
		}
		if got := own.Get().AbsPath("/api").URL().String(); got != "http://lake:8080/deep/api" {
			t.Errorf("the REST client of a %T reads %s", client, got)
		}
		if reader := ClientOf(own); reader == nil || reader.Server() != "http://lake:8080/deep" {
			t.Errorf("the REST client of a %T cannot be used: %v", client, reader)
		}
	}
}

// Of any other client it returns nil.
func TestRESTClientOfOthers(t *testing.T) {
	for _, client := range []any{
		nil, "text", (*dynamic.DynamicClient)(nil), (*metadata.Client)(nil), &dynamic.DynamicClient{}, &metadata.Client{},
		dynamicfake.NewSimpleDynamicClient(scheme.Scheme), dynamic.New(&restfake.RESTClient{}), dynamic.New(&rest.RESTClient{}),
		struct{ dynamic.Interface }{dynamic.New(nil)},
	} {
		if reader := ClientOf(RESTClientOf(client)); reader != nil {
			t.Errorf("a %T has a REST client", client)
		}
	}
}
