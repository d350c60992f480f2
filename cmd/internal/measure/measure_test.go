package measure

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Both hold the same objects in the same way, narrowed alike.
func TestBothHoldTheSame(t *testing.T) {
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer server.Close()
	if err := server.Register(apiserver.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"a", "b"} {
		for _, name := range []string{"x", "y", "z"} {
			err := server.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, test := range []struct {
		task    Task
		objects int
		typed   bool
	}{
		{Task{Resource: pods, Kind: "Pod"}, 6, true},
		{Task{Resource: pods, Kind: "Pod", Namespace: "a"}, 3, true},
		{Task{Resource: pods, Kind: "Pod", Labels: "name!=x"}, 4, true},
		{Task{Resource: pods, Kind: "Pod", Fields: "metadata.name=z"}, 2, true},
		{Task{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Kind: "Widget"}, 0, false},
	} {
		for _, holder := range []string{ClientGo, Tarn} {
			test.task.Holder = holder
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			got, err := Run(ctx, server.Config(), test.task)
			cancel()
			if err != nil || got.Objects != test.objects || got.Typed != test.typed || got.Sync <= 0 {
				t.Errorf("%+v: %+v, %v; want %d objects, typed %v", test.task, got, err, test.objects, test.typed)
			}
		}
	}
}

// A copy that fails is reported at once.
func TestFailuresEndIt(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	cfg := server.Config()
	cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed })
	})
	task := Task{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod"}
	for _, holder := range []string{ClientGo, Tarn, "nobody"} {
		task.Holder = holder
		if _, err := Run(t.Context(), cfg, task); err == nil || !strings.Contains(err.Error(), "Server closed") && !strings.Contains(err.Error(), "nobody") {
			t.Errorf("%s: %v", holder, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestMedian(t *testing.T) {
	got := Median([]Result{
		{Objects: 5, Typed: true, Sync: 3, CPU: 1, Heap: 9, HeapObjects: 4, Peak: 1},
		{Objects: 5, Typed: true, Sync: 1, CPU: 2, Heap: 8, HeapObjects: 6, Peak: 3},
		{Objects: 6, Typed: true, Sync: 2, CPU: 3, Heap: 7, HeapObjects: 5, Peak: 2},
	})
	if want := (Result{Objects: 5, Typed: true, Sync: 2, CPU: 2, Heap: 8, HeapObjects: 5, Peak: 2}); got != want {
		t.Errorf("the median is %+v, want %+v", got, want)
	}
	if got := Median([]Result{{Sync: 4}, {Sync: 2}}); got.Sync != 2 {
		t.Errorf("of two it is %v, want the lower", got.Sync)
	}
	if got := Median(nil); got != (Result{}) {
		t.Errorf("of none it is %+v", got)
	}
}
