package kube

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// The server's answer decides what the engine does next, for lists and watches
// alike.
func TestFailures(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	tooNew := apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1)
	tooNew.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	gone := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonGone, Message: "gone"}}
	for _, test := range []struct {
		name   string
		err    *apierrors.StatusError
		reason tarn.Reason
		after  time.Duration
		words  string
	}{
		{"expired", apierrors.NewResourceExpired("too old"), tarn.ReasonExpired, 0, "too old"},
		{"gone", gone, tarn.ReasonExpired, 0, "gone"},
		{"too new", tooNew, tarn.ReasonTooNew, 0, "Too large"},
		{"busy", apierrors.NewTooManyRequests("slow down", 7), tarn.ReasonBusy, 7 * time.Second, "slow down"},
		{"internal", apierrors.NewInternalError(errors.New("etcd")), tarn.ReasonInternal, 0, "etcd"},
		{"forbidden", apierrors.NewForbidden(resource, "", errors.New("no")), tarn.ReasonUnknown, 0, "grant list and watch on pods"},
		{"unauthorized", apierrors.NewUnauthorized("who?"), tarn.ReasonUnknown, 0, "the credentials are not accepted"},
		{"not found", apierrors.NewNotFound(resource, ""), tarn.ReasonUnknown, 0, "is the CRD installed"},
		{"unavailable", apierrors.NewServiceUnavailable("starting"), tarn.ReasonUnknown, 0, "starting"},
		{"timeout", apierrors.NewServerTimeout(resource, "list", 3), tarn.ReasonUnknown, 3 * time.Second, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, contentType := range []string{jsonType, protobufType} {
				s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
					status := test.err.Status()
					raw := encode(t, contentType, &status)
					if r.URL.Query().Get("labelSelector") == "packed" {
						w.Header().Set("Content-Encoding", "gzip")
						raw = packed(raw)
					}
					w.Header().Set("Content-Type", contentType)
					w.WriteHeader(int(status.Code))
					_, _ = w.Write(raw)
				})
				zipped := pods
				zipped.LabelSelector = "packed"
				_, list := newSource[*corev1.Pod](t, s, pods, SourceOptions{}).List(t.Context(), tarn.ListQuery{})
				_, watch := newSource[*corev1.Pod](t, s, pods, SourceOptions{}).Watch(t.Context(), tarn.WatchQuery{})
				_, gzip := newSource[*corev1.Pod](t, s, zipped, SourceOptions{}).List(t.Context(), tarn.ListQuery{})
				for _, err := range []error{list, watch, gzip} {
					if tarn.ReasonOf(err) != test.reason || tarn.RetryAfter(err) != test.after || !strings.Contains(err.Error(), test.words) {
						t.Errorf("%v, %v: %v", tarn.ReasonOf(err), tarn.RetryAfter(err), err)
					}
					if status, ok := errors.AsType[*apierrors.StatusError](err); !ok || status.ErrStatus.Reason != test.err.ErrStatus.Reason {
						t.Errorf("the API's error is not inside: %v", err)
					}
				}
				if !strings.HasPrefix(list.Error(), "cannot list pods: ") || !strings.HasPrefix(watch.Error(), "cannot watch pods: ") {
					t.Errorf("%v\n%v", list, watch)
				}
			}
		})
	}
}

// A server without WatchList, or one that forbids it, is distinguished from one that fails.
func TestNoWatchList(t *testing.T) {
	for code, want := range map[int]tarn.Reason{
		http.StatusUnprocessableEntity: tarn.ReasonNoWatchList,
		http.StatusBadRequest:          tarn.ReasonNoWatchList,
		http.StatusForbidden:           tarn.ReasonUnknown,
	} {
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) })
		source := newSource[*corev1.Pod](t, s, pods, SourceOptions{})
		if _, err := source.Watch(t.Context(), tarn.WatchQuery{Initial: true}); tarn.ReasonOf(err) != want {
			t.Errorf("%d: %v: %v", code, tarn.ReasonOf(err), err)
		}
		if _, err := source.Watch(t.Context(), tarn.WatchQuery{}); tarn.ReasonOf(err) != tarn.ReasonUnknown {
			t.Errorf("%d without initial events: %v", code, err)
		}
	}
}

func TestConnectionFailures(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	listener.Close()
	hanging := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			connection.Close()
		}
	})
	for _, test := range []struct {
		host   string
		reason tarn.Reason
		words  string
	}{
		{closed, tarn.ReasonRefused, "nobody listens there"},
		{hanging.URL, tarn.ReasonLost, "EOF"},
	} {
		client, err := NewClient(&rest.Config{Host: test.host}, WithHTTPClient(hanging.Client()))
		if err != nil {
			t.Fatal(err)
		}
		source, err := NewSource[*corev1.Pod](client, pods, SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, list := source.List(t.Context(), tarn.ListQuery{})
		_, watch := source.Watch(t.Context(), tarn.WatchQuery{})
		for _, err := range []error{list, watch} {
			if tarn.ReasonOf(err) != test.reason || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v: %v", tarn.ReasonOf(err), err)
			}
		}
	}
}

// A successful answer with a Status in it, or with another list, is not an empty
// list.
func TestListsThatAreNone(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old").Status()
	success := metav1.Status{Status: metav1.StatusSuccess, Message: "fine"}
	services := &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.Service{{}}}
	for _, test := range []struct {
		name   string
		body   func(contentType string) []byte
		reason tarn.Reason
		words  string
	}{
		{"failure", func(c string) []byte { return encode(t, c, &expired) }, tarn.ReasonExpired, "cannot list pods: too old"},
		{"success", func(c string) []byte { return encode(t, c, &success) }, tarn.ReasonUnknown, "is a Status: fine"},
		{"services", func(c string) []byte { return encode(t, c, services) }, tarn.ReasonUnknown, "it is a /v1, Kind=ServiceList, expected one of /v1, Kind=Pod"},
		{"a pod", func(c string) []byte { return encode(t, c, newPod(1)) }, tarn.ReasonUnknown, ""},
		{"nothing", func(c string) []byte { return nil }, tarn.ReasonLost, "the list of pods was cut off at byte 0"},
		{"text", func(c string) []byte { return []byte("hello world") }, tarn.ReasonUnknown, "the list of pods is malformed at byte 0"},
	} {
		for _, contentType := range []string{jsonType, protobufType} {
			t.Run(test.name+"/"+contentType, func(t *testing.T) {
				s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { answer(w, contentType, test.body(contentType)) })
				page, err := newSource[*corev1.Pod](t, s, pods, SourceOptions{}).List(t.Context(), tarn.ListQuery{})
				if err == nil || tarn.ReasonOf(err) != test.reason || !strings.Contains(err.Error(), test.words) {
					t.Errorf("%v: %v (%d items)", tarn.ReasonOf(err), err, len(page.Items))
				}
			})
		}
	}
	table := []byte(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"4"},"rows":[]}`)
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { answer(w, jsonType, table) })
	if _, err := newSource[any](t, s, anyPods, SourceOptions{}).List(t.Context(), tarn.ListQuery{}); !errors.Is(err, tarn.ErrNoList) {
		t.Errorf("a table: %v", err)
	}
}

// Errors are the context's own after it has ended, wherever it did.
func TestContextEnds(t *testing.T) {
	why := errors.New("enough")
	reached := make(chan struct{}, 1)
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") != "" {
			w.Header().Set("Content-Type", jsonType)
			raw, _ := json.Marshal(newPod(1))
			_, _ = w.Write([]byte(`{"kind":"PodList","items":[` + string(raw) + `,`))
			w.(http.Flusher).Flush()
		}
		reached <- struct{}{}
		<-r.Context().Done()
	})
	source := newSource[*corev1.Pod](t, s, pods, SourceOptions{})
	for name, call := range map[string]func(context.Context) error{
		"list":           func(ctx context.Context) error { _, err := source.List(ctx, tarn.ListQuery{}); return err },
		"list, midway":   func(ctx context.Context) error { _, err := source.List(ctx, tarn.ListQuery{Limit: 1}); return err },
		"watch, opening": func(ctx context.Context) error { _, err := source.Watch(ctx, tarn.WatchQuery{}); return err },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-reached
			cancel(why)
		}()
		if err := call(ctx); !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
