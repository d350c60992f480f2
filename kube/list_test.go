package kube

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

// A list arrives as the server sent it, in every format and however it is split.
func TestListFormats(t *testing.T) {
	all := newPods(testsize.Of(300, 60))
	for _, contentType := range []string{jsonType, protobufType} {
		body := podList(t, contentType, all, "400")
		for name, write := range map[string]http.HandlerFunc{
			"whole": func(w http.ResponseWriter, r *http.Request) { answer(w, contentType, body) },
			"gzip": func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "gzip" {
					t.Errorf("gzip was not asked for: %q", r.Header.Get("Accept-Encoding"))
				}
				w.Header().Set("Content-Encoding", "gzip")
				answer(w, contentType, packed(body))
			},
			"in pieces": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", contentType)
				for piece := range slices.Chunk(body, 777) {
					_, _ = w.Write(piece)
					w.(http.Flusher).Flush()
				}
			},
			"charset": func(w http.ResponseWriter, r *http.Request) { answer(w, contentType+";charset=utf-8", body) },
		} {
			for _, http2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/http2=%v", contentType, name, http2), func(t *testing.T) {
					source := newSource[*corev1.Pod](t, serve(t, http2, write), pods, SourceOptions{})
					page, err := source.List(t.Context(), tarn.ListQuery{})
					if err != nil {
						t.Fatal(err)
					}
					if page.Version != "400" || len(page.Bad) != 0 {
						t.Errorf("version %q, bad %v", page.Version, page.Bad)
					}
					if diff := difference(all, page.Items); diff != "" {
						t.Error(diff)
					}
				})
			}
		}
	}
}

// difference is cmp.Diff, which takes long for many objects, and is for those that differ.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func TestListQuery(t *testing.T) {
	for _, test := range []struct {
		query tarn.ListQuery
		c     Collection
		want  string
	}{
		{tarn.ListQuery{AtLeast: tarn.Any}, pods, "/api/v1/pods?resourceVersion=0"},
		{tarn.ListQuery{AtLeast: "12", Limit: 5}, pods, "/api/v1/pods?limit=5&resourceVersion=12"},
		{tarn.ListQuery{AtLeast: "12", Limit: 5, Continue: "token"}, pods, "/api/v1/pods?continue=token&limit=5"},
		{tarn.ListQuery{}, Collection{Resource: podResource, Object: pods.Object, Namespace: "ns", LabelSelector: "a=b", FieldSelector: "c=d"},
			"/api/v1/namespaces/ns/pods?fieldSelector=c%3Dd&labelSelector=a%3Db"},
		{tarn.ListQuery{}, Collection{Resource: podResource, Object: pods.Object, Tweak: func(o *metav1.ListOptions) { o.LabelSelector = "x" }},
			"/api/v1/pods?labelSelector=x"},
		{tarn.ListQuery{Limit: 1}, Collection{Resource: podResource, Object: pods.Object, Tweak: func(o *metav1.ListOptions) {
			*o = metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, LabelSelector: "x"}
		}}, "/api/v1/pods?labelSelector=x&limit=1"},
		{tarn.ListQuery{}, Collection{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Object: unstructuredType},
			"/apis/example.com/v1/widgets"},
	} {
		t.Run(test.want, func(t *testing.T) {
			s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				answer(w, jsonType, []byte(`{"kind":"List","apiVersion":"v1","metadata":{"continue":"more"},"items":[]}`))
			})
			page, err := newSource[any](t, s, test.c, SourceOptions{}).List(t.Context(), test.query)
			if err != nil {
				t.Fatal(err)
			}
			if page.Continue != "more" {
				t.Errorf("continue %q", page.Continue)
			}
			if got := s.seen(func(r *http.Request) string { return r.URL.String() })[0]; got != test.want {
				t.Errorf("asked for %s", got)
			}
		})
	}
}

func TestListItemsOfOtherKinds(t *testing.T) {
	item := func(kind, name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":"ns","resourceVersion":"7"}}`, kind, name)
	}
	body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` +
		strings.Join([]string{item("Pod", "a"), item("Service", "b"), item("Pod", "c"), `{"metadata":{"name":5,"namespace":"ns"}}`, `7`}, ",") + `]}`
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { answer(w, jsonType, []byte(body)) })
	page, err := newSource[*corev1.Pod](t, s, pods, SourceOptions{}).List(t.Context(), tarn.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range page.Items {
		names = append(names, p.Name)
		if p.TypeMeta != (metav1.TypeMeta{}) {
			t.Errorf("%s has a kind: %v", p.Name, p.TypeMeta)
		}
	}
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("got %v", names)
	}
	if len(page.Bad) != 3 || page.Bad[0].Key != "ns/b" || page.Bad[0].Version != "7" || !strings.Contains(page.Bad[0].Err.Error(), "Kind=Service") {
		t.Errorf("bad: %v", page.Bad)
	}
	if !errors.Is(page.Bad[1].Err, tarn.ErrUndecodable) || !strings.Contains(page.Bad[1].Err.Error(), "at byte 3") {
		t.Errorf("bad: %v", page.Bad[1])
	}

	untyped, err := newSource[*unstructured.Unstructured](t, s, anyPods, SourceOptions{}).List(t.Context(), tarn.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(untyped.Items) != 3 || untyped.Items[2].GetKind() != "Pod" || untyped.Items[2].GetAPIVersion() != "v1" {
		t.Errorf("unstructured items: %v, bad %v", untyped.Items, untyped.Bad)
	}
}

// The kind is set on objects only if SetKind is set.
func TestSetKind(t *testing.T) {
	want := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	for _, contentType := range []string{jsonType, protobufType} {
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") != "" {
				answer(w, contentType, event(t, contentType, "ADDED", newPod(1)))
			} else {
				answer(w, contentType, podList(t, contentType, newPods(2), "9"))
			}
		})
		source := newSource[*corev1.Pod](t, s, pods, SourceOptions{SetKind: true})
		page, err := source.List(t.Context(), tarn.ListQuery{})
		if err != nil || page.Items[1].TypeMeta != want {
			t.Errorf("%v, %v", page.Items, err)
		}
		stream, err := source.Watch(t.Context(), tarn.WatchQuery{})
		if err != nil {
			t.Fatal(err)
		}
		events, _ := collect(t, stream, 1)
		stream.Close()
		if events[0].Object.TypeMeta != want {
			t.Errorf("%v", events[0].Object.TypeMeta)
		}
	}
}

// If neither the items nor the collection have a kind, the list's kind counts.
func TestKindFromTheList(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		answer(w, jsonType, podList(t, jsonType, newPods(2), "9"))
	})
	unknown := anyPods
	unknown.Kind = schema.GroupVersionKind{}
	page, err := newSource[*unstructured.Unstructured](t, s, unknown, SourceOptions{}).List(t.Context(), tarn.ListQuery{})
	if err != nil || len(page.Items) != 2 || page.Items[0].GroupVersionKind() != podKind {
		t.Errorf("%v, %v", page.Items, err)
	}
}

// Custom resources may call their lists anything; built-in ones may not.
func TestListKinds(t *testing.T) {
	mice := Collection{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "mice"}, Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Mouse"}, Object: unstructuredType}
	for _, test := range []struct {
		c    Collection
		body string
		ok   bool
	}{
		{mice, `{"apiVersion":"example.com/v1","kind":"Mice","items":[{"apiVersion":"example.com/v1","kind":"Mouse","metadata":{"name":"a"}}]}`, true},
		{mice, `{"apiVersion":"example.com/v1","kind":"MiceList","items":[]}`, true},
		{mice, `{"apiVersion":"example.com/v1","kind":"MiceList","items":[{"metadata":{"name":"a"}}]}`, false},
		{mice, `{"apiVersion":"example.com/v2","kind":"MouseList","items":[]}`, false},
		{mice, `{"apiVersion":"example.com/v1","kind":"MouseList","items":[{"metadata":{"name":"a"}}]}`, true},
		{pods, `{"apiVersion":"v1","kind":"ServiceList","items":[]}`, false},
		{podMetadata, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[]}`, true},
		{podMetadata, `{"apiVersion":"v1","kind":"PodList","items":[]}`, true},
	} {
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { answer(w, jsonType, []byte(test.body)) })
		_, err := newSource[any](t, s, test.c, SourceOptions{}).List(t.Context(), tarn.ListQuery{})
		if (err == nil) != test.ok || err != nil && !errors.Is(err, tarn.ErrNoList) {
			t.Errorf("%s: %v", test.body, err)
		}
	}
}
