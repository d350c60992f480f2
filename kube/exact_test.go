package kube

import (
	"io"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
)

// An exact version is requested as such; a page token implies the version, and
// servers refuse both together.
func TestExactList(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	})
	source, err := NewSource[*unstructured.Unstructured](s.client(t, nil), anyPods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []tarn.ListQuery{
		{AtLeast: "7", Exact: true, Limit: 2},
		{AtLeast: "7", Exact: true, Limit: 2, Continue: "token"},
		{AtLeast: "7"},
	} {
		if _, err := source.List(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	got := s.seen(func(r *http.Request) string { return r.URL.RawQuery })
	want := []string{"limit=2&resourceVersion=7&resourceVersionMatch=Exact", "continue=token&limit=2", "resourceVersion=7"}
	if !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// Unshared objects share nothing, and the source they came from shares as before.
func TestUnshared(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
			{"metadata":{"name":"a"},"spec":{"zone":"the same for all of them"}},{"metadata":{"name":"b"},"spec":{"zone":"the same for all of them"}},
			{"metadata":{"name":"c"},"spec":{"zone":"the same for all of them"}},{"metadata":{"name":"d"},"spec":{"zone":"the same for all of them"}}]}`)
	})
	source, err := NewSource[*unstructured.Unstructured](s.client(t, nil), anyPods, SourceOptions{Drop: []string{"metadata.name"}})
	if err != nil {
		t.Fatal(err)
	}
	specs := func(source *Source[*unstructured.Unstructured]) (distinct int) {
		var pages []tarn.Page[*unstructured.Unstructured]
		seen := map[uintptr]bool{}
		for range 3 {
			page, err := source.List(t.Context(), tarn.ListQuery{})
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, page)
			for _, o := range page.Items {
				seen[reflect.ValueOf(o.Object["spec"]).Pointer()] = true
				if o.GetName() != "" {
					t.Errorf("%s was to be left out", o.GetName())
				}
			}
		}
		_ = pages // held, so that no address is reused
		return len(seen)
	}
	if n := specs(source.Unshared()); n != 12 {
		t.Errorf("%d specs of 12 objects that share nothing", n)
	}
	if n := specs(source); n >= 12 {
		t.Errorf("%d specs of 12 objects that share theirs", n)
	}
}
