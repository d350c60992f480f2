package ctrlcache_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
)

// waits is what controller-runtime's registry says of the reads that wait for writes.
type waits struct {
	count   map[string]uint64 // by operation and result
	seconds map[string]float64
	buckets int
}

func measuredWaits(t *testing.T) waits {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	w := waits{count: map[string]uint64{}, seconds: map[string]float64{}}
	for _, family := range families {
		if family.GetName() != "controller_runtime_client_consistency_wait_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			var values []string
			for _, pair := range m.GetLabel() {
				values = append(values, pair.GetName()+"="+pair.GetValue())
			}
			key := strings.Join(values, " ")
			w.count[key], w.seconds[key] = m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
			w.buckets = len(m.GetHistogram().GetBucket())
		}
	}
	return w
}

// since is what was measured after an earlier look.
func (w waits) since(before waits) waits {
	after := waits{count: map[string]uint64{}, seconds: map[string]float64{}, buckets: w.buckets}
	for key, n := range w.count {
		if n > before.count[key] {
			after.count[key], after.seconds[key] = n-before.count[key], w.seconds[key]-before.seconds[key]
		}
	}
	return after
}

// TestMeasuredWaits compares what the metric of controller-runtime's client counts with what
// ours does for the same reads: all that wait for writes, also those that have nothing to
// wait for, by how the wait ended.
func TestMeasuredWaits(t *testing.T) {
	reads := map[string]func(x *stage, c client.Client){
		"reads": func(x *stage, c client.Client) {
			for range 3 {
				_ = c.Get(x.ctx, podA, &corev1.Pod{})
			}
			_ = c.List(x.ctx, &corev1.PodList{})
		},
		"reads of what is not there": func(x *stage, c client.Client) {
			_ = c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "none"}, &corev1.Pod{})
			_ = c.List(x.ctx, &corev1.PodList{}, client.Continue("token"))
		},
		"reads of other namespaces than those of the cache": func(x *stage, c client.Client) {
			_ = c.Get(x.ctx, client.ObjectKey{Namespace: "west", Name: "d"}, &corev1.Pod{})
			_ = c.List(x.ctx, &corev1.PodList{}, client.InNamespace("west"))
		},
		"reads that do not wait": func(x *stage, c client.Client) {
			_ = c.Get(x.ctx, podA, &corev1.Pod{}, client.DisableReadYourWritesConsistency)
			_ = c.List(x.ctx, &corev1.PodList{}, client.DisableReadYourWritesConsistency)
		},
		"reads of the server": func(x *stage, c client.Client) {
			_ = c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "baikal"}, emptyLake())
			_ = c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "none"}, emptyLake())
			_ = c.List(x.ctx, emptyLakes())
		},
		"kinds that cannot be read": func(x *stage, c client.Client) {
			_ = c.Get(x.ctx, podA, &corev1.Secret{})
			_ = c.List(x.ctx, &corev1.SecretList{})
			_ = c.Get(x.ctx, podA, &unknownKind{})
		},
		"a wait that takes too long": func(x *stage, c client.Client) {
			x.server.hold("north")
			if err := c.Create(x.ctx, newPod("north", "new")); err != nil {
				x.Error(err)
			}
			ctx, cancel := context.WithTimeout(x.ctx, 30*time.Millisecond)
			defer cancel()
			_ = c.Get(ctx, client.ObjectKey{Namespace: "north", Name: "new"}, &corev1.Pod{})
			_ = c.List(ctx, &corev1.PodList{})
			ended, end := context.WithCancel(x.ctx)
			end()
			_ = c.List(ended, &corev1.PodList{})
			x.server.release("north")
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			var seen []waits
			for _, newClient := range []client.NewClientFunc{client.New, ctrlcache.NewClient} {
				x := running(t, twoNamespaces)
				c := x.bareClient(newClient, true)
				if err := c.Get(x.ctx, podA, &corev1.Pod{}, client.DisableReadYourWritesConsistency); err != nil {
					t.Fatal(err)
				}
				before := measuredWaits(t)
				read(x, c)
				seen = append(seen, measuredWaits(t).since(before))
			}
			if diff := cmp.Diff(seen[0].count, seen[1].count); diff != "" {
				t.Errorf("the numbers of reads (-controller-runtime +ours)\n%s", diff)
			}
			if len(seen[0].count) == 0 != (name == "reads that do not wait") {
				t.Errorf("controller-runtime counted %v", seen[0].count)
			}
		})
	}
}

// unknownKind is in no scheme.
type unknownKind struct{ corev1.Pod }

// TestMeasuredWaitLasts measures how long a read waits, and no more than that.
func TestMeasuredWaitLasts(t *testing.T) {
	for _, operation := range []string{"get", "list"} {
		t.Run(operation, func(t *testing.T) {
			x := running(t, cache.Options{})
			c := x.client(ctrlcache.NewClient)
			x.names(&corev1.PodList{})
			x.server.hold("")
			p := newPod("north", "new")
			if err := c.Create(x.ctx, p); err != nil {
				t.Fatal(err)
			}
			read := func() error { return c.List(x.ctx, &corev1.PodList{}) }
			if operation == "get" {
				read = func() error { return c.Get(x.ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}) }
			}
			before, began := measuredWaits(t), time.Now()
			if x.late("", read) {
				t.Error("the read did not wait")
			}
			took := time.Since(began)
			got := measuredWaits(t).since(before)
			key := fmt.Sprintf("operation=%s result=success", operation)
			if s := got.seconds[key]; got.count[key] != 1 || s < 0.05 || s > took.Seconds() {
				t.Errorf("measured %v, %v; the read took %v", got.count, got.seconds, took)
			}
			if got.buckets != 13 {
				t.Errorf("%d buckets; controller-runtime's histogram has 13", got.buckets)
			}
		})
	}
}

// TestReadsOfTheServerWaitForNothing measures a read that the cache has no part in. How long
// the server takes is not a wait for the cache.
func TestReadsOfTheServerWaitForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiserver.New(apiserver.Options{})
		defer api.Close()
		if err := api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}); err != nil {
			t.Fatal(err)
		}
		x := runningFor(t, api.Config(), cache.Options{})
		cfg := api.Config()
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				return next.RoundTrip(r)
			})
		})
		c, err := ctrlcache.NewClient(cfg, client.Options{Cache: &client.CacheOptions{
			Reader: x.cache, DisableFor: []client.Object{&corev1.ConfigMap{}}, EnableReadYourWritesConsistency: ptr.To(true),
		}})
		if err != nil {
			t.Fatal(err)
		}
		before := measuredWaits(t)
		if err := c.Get(x.ctx, client.ObjectKey{Namespace: "default", Name: "c"}, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		got := measuredWaits(t).since(before)
		if key := "operation=get result=success"; got.count[key] != 1 || got.seconds[key] != 0 {
			t.Errorf("measured %v, %v", got.count, got.seconds)
		}
	})
}
