package cache

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn"
)

// TestSuppliedSourceTellsTheSameStories: a ListerWatcher that is passed as a source
// makes the same informer as one that is passed directly.
func TestSuppliedSourceTellsTheSameStories(t *testing.T) {
	quiet(t)
	bySource := ours
	bySource.newSharedInformer = func(lw ListerWatcher, example runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
		src := newSource(lw, example, describeType(example))
		return NewSharedIndexInformerFromSource(src, example, options, usesWatchList(lw))
	}
	for _, s := range readScenarios(t) {
		if !slices.Contains(s.kinds(), "shared") || s.Name == "watch-nil" {
			continue // the last is about words for a ListerWatcher
		}
		t.Run(s.Name, func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, s.With.Has("watchlist"))
			s.check(t, bySource, "shared", s.tell(t, bySource, "shared", 0))
		})
	}
}

// brokenSource has one pod and then fails as configured.
type brokenSource struct {
	items   []any
	watches []error
}

func (s *brokenSource) List(context.Context, tarn.ListQuery) (tarn.Page[any], error) {
	return tarn.Page[any]{Items: s.items, Version: "5"}, nil
}

func (s *brokenSource) Watch(ctx context.Context, _ tarn.WatchQuery) (tarn.Stream[any], error) {
	if len(s.watches) == 0 {
		return &endedStream{}, nil
	}
	err := s.watches[0]
	s.watches = s.watches[1:]
	if err == io.EOF {
		return &endedStream{io.EOF}, nil
	}
	return nil, err
}

func (s *brokenSource) Describe(object any) (tarn.Meta, error) {
	pod := object.(*corev1.Pod)
	return tarn.Meta{Key: tarn.Key(pod.Namespace + "/" + pod.Name), Version: tarn.Version(pod.ResourceVersion)}, nil
}

// endedStream has nothing to say and ends with an error, or with its context.
type endedStream struct{ err error }

func (s *endedStream) Next(ctx context.Context, _ []tarn.Event[any]) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

func (*endedStream) Close() {}

// TestSuppliedSourceErrors: errors have the form that handlers look for, and only
// objects of the right type are accepted.
func TestSuppliedSourceErrors(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
	for name, c := range map[string]struct {
		fails error
		looks func(error) bool
	}{
		"expired":   {tarn.Because(tarn.ReasonExpired, 0, errors.New("compacted")), apierrors.IsResourceExpired},
		"forbidden": {forbidden, func(err error) bool { return err == error(forbidden) }},
		"short":     {io.EOF, func(err error) bool { _, ok := errors.AsType[*upstream.VeryShortWatchError](err); return ok }},
	} {
		t.Run(name, func(t *testing.T) {
			newRecorder(nil).catchReports(t)
			synctest.Test(t, func(t *testing.T) {
				src := &brokenSource{
					items: []any{
						&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: "3"}},
						&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", ResourceVersion: "4"}},
					},
					watches: []error{c.fails},
				}
				informer := NewSharedIndexInformerFromSource(src, &corev1.Pod{}, SharedIndexInformerOptions{}, false)
				var told []error
				must(informer.SetWatchErrorHandler(func(_ *Reflector, err error) {
					if _, bad := errors.AsType[tarn.ObjectErrors](err); !bad {
						told = append(told, err)
					}
				}))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				informer.RunWithContext(ctx)
				if keys := informer.GetStore().ListKeys(); len(keys) != 1 || keys[0] != "ns/p" {
					t.Errorf("the store has %v", keys)
				}
				if len(told) != 1 || !c.looks(told[0]) {
					t.Errorf("the handler was told %v", told)
				}
			})
		})
	}
}

func TestSuppliedSourceIsNil(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		informer := NewSharedIndexInformerFromSource(nil, &corev1.Pod{}, SharedIndexInformerOptions{}, true)
		var told error
		must(informer.SetWatchErrorHandler(func(_ *Reflector, err error) { told = err }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		informer.RunWithContext(ctx)
		if told == nil || !strings.Contains(told.Error(), "the source is nil") {
			t.Errorf("the handler was told %v", told)
		}
	})
}

// TestSuppliedSourceIsMetered: lists, watches and what they bring are counted.
func TestSuppliedSourceIsMetered(t *testing.T) {
	var counted countedMetrics
	src := &suppliedSource{
		Source:   &brokenSource{items: []any{&corev1.Pod{}, &corev1.Secret{}}, watches: []error{io.EOF}},
		expected: expectedTypeOf(&corev1.Pod{}),
		meter:    counted.meter(),
	}
	page, err := src.List(t.Context(), tarn.ListQuery{})
	if err != nil || len(page.Items) != 1 || len(page.Bad) != 1 {
		t.Errorf("page %v, %v", page, err)
	}
	stream, err := src.Watch(t.Context(), tarn.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	stream.Close()
	stream.Close()
	if counted.lists != 1 || counted.items != 1 || counted.watches != 1 || counted.short != 1 {
		t.Errorf("counted %+v", counted)
	}
}

type countedMetrics struct{ lists, watches, short, items float64 }

type countMetric struct{ n *float64 }

func (c countMetric) Inc()              { *c.n++ }
func (c countMetric) Observe(v float64) { *c.n += v }
func (c countMetric) Set(float64)       {}

func (m *countedMetrics) meter() *reflectorMeter {
	unused := countMetric{new(float64)}
	return &reflectorMeter{
		lists: countMetric{&m.lists}, watches: countMetric{&m.watches}, shortWatches: countMetric{&m.short},
		listTime: unused, listItems: countMetric{&m.items}, watchTime: unused, watchItems: unused, lastVersion: unused,
	}
}
