package cache

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/watchlist"
)

func TestListWatchFromClient(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`))
		}
	}))
	defer server.Close()
	client, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	byField := NewListWatchFromClient(client, "pods", "x", fields.OneTermEqualSelector("spec.nodeName", "n1"))
	filtered := NewFilteredListWatchFromClient(client, "pods", "", func(options *metav1.ListOptions) {
		options.LabelSelector, options.ResourceVersion = "app=web", "9" // the last word
	})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, lw := range []*ListWatch{byField, filtered} {
		for name, list := range map[string]func(context.Context, metav1.ListOptions) (runtime.Object, error){
			"with context": lw.ListWithContext,
			"without":      func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) { return lw.List(o) },
		} {
			if got, err := list(t.Context(), metav1.ListOptions{ResourceVersion: "1"}); err != nil || got == nil {
				t.Errorf("list %s: %v, %v", name, got, err)
			}
		}
		for name, follow := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
			"with context": lw.WatchWithContext,
			"without":      func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) { return lw.Watch(o) },
		} {
			if got, err := follow(t.Context(), metav1.ListOptions{ResourceVersion: "2"}); err != nil {
				t.Errorf("watch %s: %v", name, err)
			} else {
				got.Stop()
			}
		}
		if _, err := lw.ListWithContext(cancelled, metav1.ListOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled list gave %v", err)
		}
		if _, err := lw.WatchWithContext(cancelled, metav1.ListOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled watch gave %v", err)
		}
	}
	want := []string{
		"/api/v1/namespaces/x/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=1",
		"/api/v1/namespaces/x/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=1",
		"/api/v1/namespaces/x/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=2&watch=true",
		"/api/v1/namespaces/x/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=2&watch=true",
		"/api/v1/pods?labelSelector=app%3Dweb&resourceVersion=9",
		"/api/v1/pods?labelSelector=app%3Dweb&resourceVersion=9",
		"/api/v1/pods?labelSelector=app%3Dweb&resourceVersion=9&watch=true",
		"/api/v1/pods?labelSelector=app%3Dweb&resourceVersion=9&watch=true",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// plainSource has no method that takes a context.
type plainSource struct{ called *[]string }

func (s plainSource) List(metav1.ListOptions) (runtime.Object, error) {
	*s.called = append(*s.called, "list")
	return nil, nil
}

func (s plainSource) Watch(metav1.ListOptions) (watch.Interface, error) {
	*s.called = append(*s.called, "watch")
	return nil, nil
}

// halfSource takes a context for its list only.
type halfSource struct{ plainSource }

func (s halfSource) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	*s.called = append(*s.called, "list with context")
	return nil, nil
}

func TestSourcesAreGivenContexts(t *testing.T) {
	var called []string
	plain, half := plainSource{&called}, halfSource{plainSource{&called}}
	for _, lw := range []ListerWatcher{plain, half} {
		both := ToListerWatcherWithContext(lw)
		_, _ = both.ListWithContext(t.Context(), metav1.ListOptions{})
		_, _ = both.WatchWithContext(t.Context(), metav1.ListOptions{})
		_, _ = ToListerWithContext(lw).ListWithContext(t.Context(), metav1.ListOptions{})
		_, _ = ToWatcherWithContext(lw).WatchWithContext(t.Context(), metav1.ListOptions{})
	}
	want := []string{"list", "watch", "list", "watch", "list with context", "watch", "list with context", "watch"}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("called (-want +got):\n%s", diff)
	}
	full := &ListWatch{}
	if ToListerWatcherWithContext(full) != ListerWatcherWithContext(full) || ToListerWithContext(full) != ListerWithContext(full) || ToWatcherWithContext(full) != WatcherWithContext(full) {
		t.Error("a source that takes contexts is wrapped")
	}
	if _, ok := ToListerWithContext(plain).(WatcherWithContext); ok {
		t.Error("a wrapped lister pretends to watch")
	}
}

type fakeClient bool

func (c fakeClient) IsWatchListSemanticsUnSupported() bool { return bool(c) }

func TestWatchListSemanticsOfTheClient(t *testing.T) {
	lw := &ListWatch{}
	for _, c := range []struct {
		client any
		want   bool
	}{{nil, false}, {fakeClient(false), false}, {fakeClient(true), true}} {
		got := ToListWatcherWithWatchListSemantics(lw, c.client)
		if watchlist.DoesClientNotSupportWatchListSemantics(got) != c.want {
			t.Errorf("client %v: unsupported is not %v", c.client, c.want)
		}
		if _, ok := got.(ListerWatcherWithContext); !ok {
			t.Error("the context methods are lost")
		}
	}
}
