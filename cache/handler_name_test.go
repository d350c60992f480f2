package cache

import (
	"testing"

	upstream "k8s.io/client-go/tools/cache"
)

type namedHandler struct {
	upstream.ResourceEventHandlerFuncs
}

func TestHandlerName(t *testing.T) {
	const here = "github.com/tarnproject/tarn/cache."
	function := func(any) {}
	for _, c := range []struct {
		name    string
		handler ResourceEventHandler
		want    string
	}{
		{"one function", ResourceEventHandlerFuncs{AddFunc: function}, here + "TestHandlerName"},
		{"functions of one place", ResourceEventHandlerFuncs{AddFunc: func(any) {}, UpdateFunc: func(any, any) {}, DeleteFunc: function}, here + "TestHandlerName"},
		{"pointer to functions", &ResourceEventHandlerFuncs{DeleteFunc: function}, here + "TestHandlerName"},
		{
			"functions of two places",
			ResourceEventHandlerFuncs{UpdateFunc: ResourceEventHandlerFuncs{}.OnUpdate, DeleteFunc: function},
			"k8s.io/client-go/tools/cache.ResourceEventHandlerFuncs.OnUpdate-fm+" + here + "TestHandlerName.func1",
		},
		{"no functions", ResourceEventHandlerFuncs{}, "cache.ResourceEventHandlerFuncs"},
		{"type", namedHandler{}, here + "namedHandler"},
		{"pointer to type", &namedHandler{}, here + "namedHandler"},
		{"nil", nil, "<nil>"},
		{"nil pointer", (*namedHandler)(nil), "*cache.namedHandler"},
		{"nil pointer to functions", (*ResourceEventHandlerFuncs)(nil), "*cache.ResourceEventHandlerFuncs"},
		{"anonymous type", struct{ ResourceEventHandler }{}, "struct { cache.ResourceEventHandler }"},
	} {
		if got := handlerName(c.handler); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
