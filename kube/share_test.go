package kube

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
)

// Objects share parts, unless the options or a caller that will change them forbid
// it.
func TestShareParts(t *testing.T) {
	for name, test := range map[string]struct {
		opts SourceOptions
		say  func(*Source[*corev1.Pod])
		want bool
	}{
		"unsaid":             {SourceOptions{}, func(*Source[*corev1.Pod]) {}, true},
		"on":                 {SourceOptions{}, func(s *Source[*corev1.Pod]) { s.ShareParts(true) }, true},
		"off":                {SourceOptions{}, func(s *Source[*corev1.Pod]) { s.ShareParts(false) }, false},
		"off and on again":   {SourceOptions{}, func(s *Source[*corev1.Pod]) { s.ShareParts(false); s.ShareParts(true) }, true},
		"on, but not wanted": {SourceOptions{Unshared: true}, func(s *Source[*corev1.Pod]) { s.ShareParts(true) }, false},
	} {
		for _, contentType := range []string{jsonType, protobufType} {
			t.Run(name+" "+contentType, func(t *testing.T) {
				body := podList(t, contentType, newPods(20), "1")
				server := serve(t, false, func(w http.ResponseWriter, _ *http.Request) { answer(w, contentType, body) })
				source := newSource[*corev1.Pod](t, server, pods, test.opts)
				test.say(source)
				page, err := source.List(t.Context(), tarn.ListQuery{})
				if err != nil {
					t.Fatal(err)
				}
				last := len(page.Items) - 1
				if got := &page.Items[last].Spec.Containers[0] == &page.Items[last-1].Spec.Containers[0]; got != test.want {
					t.Errorf("two pods with the same containers have them in common: %v", got)
				}
			})
		}
	}
}
