package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// A transport may answer without a body, or return nil, as those of tests do: net/http allows
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

// announcedBody tells a test that everything was read that has been sent.
type announcedBody struct {
	io.ReadCloser
	some   bool
	stalls chan<- struct{}
}

func (b *announcedBody) Read(p []byte) (int, error) {
	if b.some {
		b.stalls <- struct{}{}
	}
	b.some = true
	return b.ReadCloser.Read(p)
}

// A transport may lose the context of a request, as wrappers that add values to it do. Lists
// and streams end with theirs nevertheless.
func TestTransportThatLosesTheContext(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 2)
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[`)
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	client, err := NewClient(s.config(), WithHTTPClient(&http.Client{
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := s.Client().Transport.RoundTrip(r.WithContext(context.Background()))
			if err == nil {
				resp.Body = &announcedBody{ReadCloser: resp.Body, stalls: began}
			}
			return resp, err
		}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(context.Context) error{
		"list": func(ctx context.Context) error {
			_, err := source.List(ctx, tarn.ListQuery{})
			return err
		},
		"watch": func(ctx context.Context) error {
			stream, err := source.Watch(ctx, tarn.WatchQuery{})
			if err != nil {
				return err
			}
			defer stream.Close()
			_, err = stream.Next(ctx, make([]tarn.Event[*corev1.Pod], 1))
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- read(ctx) }()
		<-began
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("the %s does not end with its context", name)
		}
	}
}

// A body may end neither with its context nor when it is closed, as those of tests do. A list
// does not wait for it, and takes nothing of it any more.
func TestListWhoseBodyDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		client, err := NewClient(&rest.Config{Host: "http://lake"}, WithHTTPClient(&http.Client{
			Transport: roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Body: io.NopCloser(in)}, nil
			}),
		}))
		if err != nil {
			t.Fatal(err)
		}
		source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := source.StreamList(ctx, tarn.ListQuery{}, func(items []*corev1.Pod) {
				if ctx.Err() != nil {
					t.Errorf("%d items are taken after the end", len(items))
				}
			})
			ended <- err
		}()
		list := podList(t, jsonType, newPods(2000), "9")
		if _, err := out.Write(list[:len(list)/2]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the list waits for its body")
		}
		if _, err := out.Write(list[len(list)/2:]); err != nil {
			t.Error(err)
		}
		out.Close()
	})
}
