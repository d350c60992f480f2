package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// observed is a list and a watch as their reader sees them.
type observed struct {
	Version, Continue string
	Items             []any
	Events            []string
	Objects           []any
}

// plainPods serves pods like an API server, in the requested format.
func plainPods(t *testing.T) http.HandlerFunc {
	all := newPods(40)
	all[3].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: fieldsOf(`{"f:a":{}}`)}}
	all[4].OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", UID: "u"}}
	all[5] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	return func(w http.ResponseWriter, r *http.Request) {
		contentType := jsonType
		if wants(r, protobufType) {
			contentType = protobufType
		}
		partial := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
		form := func(p *corev1.Pod) runtime.Object {
			if partial {
				return &metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}
			}
			return p
		}
		w.Header().Set("Content-Type", contentType)
		if r.URL.Query().Get("watch") != "" {
			for i, p := range all {
				_, _ = w.Write(rawEvent(t, contentType, []string{"ADDED", "MODIFIED", "DELETED"}[i%3], write(t, contentType, form(p))))
			}
			_, _ = w.Write(rawEvent(t, contentType, "BOOKMARK", write(t, contentType, form(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "77"}}))))
			return
		}
		head := metav1.ListMeta{ResourceVersion: "66", Continue: "token"}
		if !partial {
			list := &corev1.PodList{ListMeta: head}
			for _, p := range all {
				list.Items = append(list.Items, *p)
			}
			_, _ = w.Write(write(t, contentType, list))
			return
		}
		list := &metav1.PartialObjectMetadataList{ListMeta: head}
		for _, p := range all {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta})
		}
		_, _ = w.Write(write(t, contentType, list))
	}
}

// write encodes an object under its right group, pods or metadata.
func write(t *testing.T, contentType string, o runtime.Object) []byte {
	kind := ""
	switch o.(type) {
	case *metav1.PartialObjectMetadata:
		kind = "PartialObjectMetadata"
	case *metav1.PartialObjectMetadataList:
		kind = "PartialObjectMetadataList"
	default:
		return encode(t, contentType, o)
	}
	if contentType == jsonType {
		o.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	raw, err := o.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	raw, err = (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), raw...)
}

// The source returns the same values as client-go's clients.
func TestSameAsClientGo(t *testing.T) {
	type lister func(context.Context, metav1.ListOptions) (runtime.Object, error)
	type watcher func(context.Context, metav1.ListOptions) (watch.Interface, error)
	for _, test := range []struct {
		name       string
		collection Collection
		theirs     func(*testing.T, *rest.Config, *http.Client) (lister, watcher)
	}{
		{"typed", pods, func(t *testing.T, cfg *rest.Config, h *http.Client) (lister, watcher) {
			c, err := kubernetes.NewForConfigAndClient(cfg, h)
			if err != nil {
				t.Fatal(err)
			}
			list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return c.CoreV1().Pods("").List(ctx, o)
			}
			return list, c.CoreV1().Pods("").Watch
		}},
		{"unstructured", anyPods, func(t *testing.T, cfg *rest.Config, h *http.Client) (lister, watcher) {
			c, err := dynamic.NewForConfigAndClient(cfg, h)
			if err != nil {
				t.Fatal(err)
			}
			list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return c.Resource(podResource).List(ctx, o)
			}
			return list, c.Resource(podResource).Watch
		}},
		{"metadata", podMetadata, func(t *testing.T, cfg *rest.Config, h *http.Client) (lister, watcher) {
			c, err := metadata.NewForConfigAndClient(cfg, h)
			if err != nil {
				t.Fatal(err)
			}
			list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return c.Resource(podResource).List(ctx, o)
			}
			return list, c.Resource(podResource).Watch
		}},
	} {
		for _, contentType := range []string{"", jsonType} {
			t.Run(fmt.Sprintf("%s/%s", test.name, contentType), func(t *testing.T) {
				s := serve(t, false, plainPods(t))
				cfg := s.config()
				cfg.ContentType = contentType
				list, watch := test.theirs(t, cfg, s.Client())
				want := throughClientGo(t, list, watch)
				client, err := NewClient(cfg, WithHTTPClient(s.Client()))
				if err != nil {
					t.Fatal(err)
				}
				source, err := NewSource[any](client, test.collection, SourceOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, throughSource(t, source)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func throughClientGo(t *testing.T, list func(context.Context, metav1.ListOptions) (runtime.Object, error), open func(context.Context, metav1.ListOptions) (watch.Interface, error)) (o observed) {
	l, err := list(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	head, err := meta.ListAccessor(l)
	if err != nil {
		t.Fatal(err)
	}
	o.Version, o.Continue = head.GetResourceVersion(), head.GetContinue()
	_ = meta.EachListItem(l, func(item runtime.Object) error {
		o.Items = append(o.Items, item)
		return nil
	})
	w, err := open(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Bookmark {
			m, _ := meta.Accessor(e.Object)
			o.Events = append(o.Events, "bookmark "+m.GetResourceVersion())
			continue
		}
		o.Events = append(o.Events, strings.ToLower(string(e.Type)))
		o.Objects = append(o.Objects, e.Object)
	}
	return o
}

func throughSource(t *testing.T, source *Source[any]) (o observed) {
	page, err := source.List(t.Context(), tarn.ListQuery{})
	if err != nil || len(page.Bad) > 0 {
		t.Fatal(err, page.Bad)
	}
	o.Version, o.Continue, o.Items = string(page.Version), page.Continue, page.Items
	stream, err := source.Watch(t.Context(), tarn.WatchQuery{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	events, err := collect(t, stream, 16)
	if err != io.EOF {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Bad.Err != nil {
			t.Fatal(e.Bad)
		}
		if e.Type == tarn.EventBookmark {
			o.Events = append(o.Events, "bookmark "+string(e.Version))
			continue
		}
		o.Events = append(o.Events, map[tarn.EventType]string{tarn.EventAdded: "added", tarn.EventModified: "modified", tarn.EventDeleted: "deleted"}[e.Type])
		o.Objects = append(o.Objects, e.Object)
	}
	return o
}

// fieldsOf makes a manager's fields in a way that works with every version of
// apimachinery.
func fieldsOf(text string) *metav1.FieldsV1 {
	fields := &metav1.FieldsV1{}
	if err := fields.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return fields
}
