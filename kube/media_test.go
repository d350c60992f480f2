package kube

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

func TestAccept(t *testing.T) {
	const (
		both         = protobufType + "," + jsonType
		partialList  = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		partialWatch = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	)
	for _, test := range []struct {
		name                string
		accept, contentType string
		c                   Collection
		list, watch         string
	}{
		{"typed", "", "", pods, both, both},
		{"unstructured", "", "", anyPods, jsonType, jsonType},
		{"metadata", "", "", podMetadata,
			protobufType + partialList + "," + jsonType + partialList + "," + jsonType,
			protobufType + partialWatch + "," + jsonType + partialWatch + "," + jsonType},
		{"JSON preferred", "", jsonType, pods, jsonType, jsonType},
		{"JSON only", jsonType, "", pods, jsonType, jsonType},
		{"JSON only, metadata", jsonType, "", podMetadata, jsonType + partialList + "," + jsonType, jsonType + partialWatch + "," + jsonType},
		{"protobuf preferred", "", protobufType, pods, both, both},
		{"protobuf only", protobufType, jsonType, pods, protobufType, protobufType},
		{"protobuf only, unstructured", protobufType, protobufType, anyPods, jsonType, jsonType},
		{"both with weights", "application/vnd.kubernetes.protobuf;q=1, application/json; q=0.5", "", pods, both, both},
		{"anything", "*/*", "", pods, both, both},
		{"what we cannot read", "application/cbor", "", pods, jsonType, jsonType},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
			})
			client := s.client(t, func(cfg *rest.Config) {
				cfg.AcceptContentTypes, cfg.ContentType = test.accept, test.contentType
			})
			source, err := NewSource[any](client, test.c, SourceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := source.List(t.Context(), tarn.ListQuery{}); err != nil {
				t.Error(err)
			}
			stream, err := source.Watch(t.Context(), tarn.WatchQuery{Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			stream.Close()
			if diff := cmp.Diff([]string{test.list, test.watch}, s.seen(func(r *http.Request) string { return r.Header.Get("Accept") })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A server that refuses protobuf gets requests for JSON from then on, for this
// resource only.
func TestMediaFallback(t *testing.T) {
	for _, code := range []int{http.StatusNotAcceptable, http.StatusUnsupportedMediaType} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.Header.Get("Accept"), protobufType) && strings.HasSuffix(r.URL.Path, "/pods"):
					w.WriteHeader(code)
				case r.URL.Query().Get("watch") != "":
					answer(w, jsonType, event(t, jsonType, "ADDED", newPod(1)))
				default:
					answer(w, jsonType, podList(t, jsonType, newPods(3), "9"))
				}
			})
			client := s.client(t, nil)
			source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if page, err := source.List(t.Context(), tarn.ListQuery{}); err != nil || len(page.Items) != 3 {
					t.Fatalf("%d items, %v", len(page.Items), err)
				}
			}
			stream, err := source.Watch(t.Context(), tarn.WatchQuery{Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			if events, _ := collect(t, stream, 1); len(events) != 1 {
				t.Errorf("%d events", len(events))
			}
			other := pods
			other.Resource.Resource = "others"
			others, err := NewSource[*corev1.Pod](client, other, SourceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := others.List(t.Context(), tarn.ListQuery{}); err != nil {
				t.Fatal(err)
			}
			both := protobufType + "," + jsonType
			want := []string{both, jsonType, jsonType, jsonType, both}
			if diff := cmp.Diff(want, s.seen(func(r *http.Request) string { return r.Header.Get("Accept") })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMediaRefusedForGood(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotAcceptable) })
	for accept, tries := range map[string]int{protobufType: 1, "": 2} {
		source, err := NewSource[*corev1.Pod](s.client(t, func(cfg *rest.Config) { cfg.AcceptContentTypes = accept }), pods, SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		before := len(s.seen(func(*http.Request) string { return "" }))
		if _, err := source.List(t.Context(), tarn.ListQuery{}); err == nil || !strings.Contains(err.Error(), "make it accept application/json too") {
			t.Errorf("%q: %v", accept, err)
		}
		if got := len(s.seen(func(*http.Request) string { return "" })) - before; got != tries {
			t.Errorf("%q: asked %d times", accept, got)
		}
	}
}

func TestForeignContentType(t *testing.T) {
	for contentType, want := range map[string]string{
		"text/html":      "the answer is text/html, not JSON",
		"application/ ;": "is malformed",
	} {
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { answer(w, contentType, []byte("<html>")) })
		source := newSource[*corev1.Pod](t, s, pods, SourceOptions{})
		if _, err := source.List(t.Context(), tarn.ListQuery{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cannot list pods") {
			t.Errorf("list: %v", err)
		}
		if _, err := source.Watch(t.Context(), tarn.WatchQuery{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cannot watch pods") {
			t.Errorf("watch: %v", err)
		}
	}
}
