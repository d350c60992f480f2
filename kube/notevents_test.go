package kube

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tarnproject/tarn"
)

// A proxy may answer a watch with a Status, or with a list because it drops the parameter:
// the watch fails, and says so. Counted as bad objects of a watch that continues, these
// answers would look like fresh news.
func TestWatchAnsweredWithoutEvents(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want func(error) bool
	}{
		"a Status": {
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not you"}`,
			func(err error) bool { return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "not you") },
		},
		"a Status over several lines": {
			"{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"code\": 429,\n  \"status\": \"Failure\",\n  \"reason\": \"TooManyRequests\"\n}\n",
			apierrors.IsTooManyRequests,
		},
		"a list": {
			string(podList(t, jsonType, newPods(3), "9")),
			func(err error) bool { return strings.Contains(err.Error(), "answered with a PodList") },
		},
		"an object": {
			string(encode(t, jsonType, newPod(1))),
			func(err error) bool { return strings.Contains(err.Error(), "answered with a Pod") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, false, func(w http.ResponseWriter, _ *http.Request) { answer(w, jsonType, []byte(test.body)) })
			events, err := collect(t, watchPods(t, s, SourceOptions{}), 8)
			if len(events) > 0 || !test.want(err) {
				t.Errorf("%v, %v", events, err)
			}
		})
	}
}

// A list whose pages all lead to the same page would never end.
func TestListThatDoesNotAdvance(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"more"},"items":[]}`))
	})
	source := newSource[*corev1.Pod](t, s, pods, SourceOptions{})
	page, err := source.List(t.Context(), tarn.ListQuery{Limit: 1})
	if err != nil || page.Continue != "more" {
		t.Fatalf("the first page: %v, continue %q", err, page.Continue)
	}
	if _, err = source.List(t.Context(), tarn.ListQuery{Limit: 1, Continue: page.Continue}); err == nil || !strings.Contains(err.Error(), "does not advance") {
		t.Errorf("the second page: %v", err)
	}
}

// What a server says of its resources is not read without end.
func TestResourcesAreBounded(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, err := io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[`)
		for i := 0; err == nil; i++ {
			_, err = fmt.Fprintf(w, `{"name":"pods%d/%s","kind":"Pod"},`, i, strings.Repeat("x", 1<<20))
		}
	})
	l := &locator{client: s.client(t, nil), kind: podKind, sem: make(chan struct{}, 1)}
	if _, _, err := l.locate(t.Context()); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Error(err)
	}
}
