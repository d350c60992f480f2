package kube

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// A transport may answer without a body, or not at all, as those of tests do: net/http allows
// the former, and makes an error of the latter.
func TestAnswersWithoutABody(t *testing.T) {
	for name, answer := range map[string]*http.Response{
		"no answer":  nil,
		"forbidden":  {StatusCode: http.StatusForbidden},
		"success":    {StatusCode: http.StatusOK},
		"compressed": {StatusCode: http.StatusForbidden, Header: http.Header{"Content-Encoding": {"gzip"}}},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := NewClient(&rest.Config{Host: "http://lake"}, WithHTTPClient(&http.Client{
				Transport: roundTripper(func(*http.Request) (*http.Response, error) {
					if answer == nil {
						return nil, nil
					}
					again := *answer
					return &again, nil
				}),
			}))
			if err != nil {
				t.Fatal(err)
			}
			source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			forbidden := answer != nil && answer.StatusCode == http.StatusForbidden
			if _, err := source.List(t.Context(), tarn.ListQuery{}); err == nil || apierrors.IsForbidden(err) != forbidden {
				t.Errorf("the list: %v", err)
			}
			if answer != nil && !forbidden {
				return // the stream is empty
			}
			if _, err := source.Watch(t.Context(), tarn.WatchQuery{}); err == nil || apierrors.IsForbidden(err) != forbidden {
				t.Errorf("the watch: %v", err)
			}
		})
	}
}
