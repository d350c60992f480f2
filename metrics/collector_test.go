package metrics_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/metrics"
)

// fake is observable and not a replica.
type fake struct {
	health      tarn.Health
	subscribers []tarn.SubscriberLag
}

func (f fake) Health() tarn.Health               { return f.health }
func (f fake) Len() int                          { return 7 }
func (f fake) Subscribers() []tarn.SubscriberLag { return f.subscribers }

// Engines have metrics by their names, a disk has its own.
func TestSinks(t *testing.T) {
	got := badEngine(t, func(before, after map[string]float64) {})
	maps.DeleteFunc(got, func(key string, v float64) bool {
		return !strings.Contains(key, "sink") && !strings.Contains(key, "disk") || v == 0
	})
	want := map[string]float64{
		"tarn_sink_pending{replica=x,sink=postgres}": 3, "tarn_sink_pending_bytes{replica=x,sink=postgres}": 4096, "tarn_sink_lag_seconds{replica=x,sink=postgres}": 2,
		"tarn_sink_failing{replica=x,sink=postgres}": 1, "tarn_sink_failures_total{replica=x,sink=postgres}": 5, "tarn_sink_gaps_total{replica=x,sink=postgres}": 1, "tarn_sink_bad_objects{replica=x,sink=postgres}": 2,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// badEngine has an engine go away, and returns what is shown then.
func badEngine(t *testing.T, compare func(before, after map[string]float64)) map[string]float64 {
	t.Helper()
	show := func(postgres tarn.SinkHealth) map[string]float64 {
		c := metrics.NewCollector(metrics.Options{})
		health := tarn.Health{Sinks: []tarn.SinkHealth{postgres, {Name: "disk"}, {Name: "postgres"}}, Disk: &postgres}
		if err := c.Add("x", fake{health: health}); err != nil {
			t.Fatal(err)
		}
		return gather(t, c)
	}
	well := show(tarn.SinkHealth{Name: "postgres"})
	away := show(tarn.SinkHealth{Name: "postgres", Pending: 3, PendingBytes: 4096, Lag: 2 * time.Second, Err: errors.New("away"), Failures: 5, Gaps: 1, BadCount: 2})
	compare(well, away)
	return away
}

// Subscribers of one name are one series, and any name is taken.
func TestSubscribersOfOneName(t *testing.T) {
	c := metrics.NewCollector(metrics.Options{})
	if err := c.Add("x", fake{subscribers: []tarn.SubscriberLag{
		{Name: "a", Lag: tarn.Lag{Pending: 2, Age: time.Second}}, {Name: "a", Lag: tarn.Lag{Pending: 3, Age: time.Minute}},
		{Lag: tarn.Lag{Pending: 1}}, {Name: "b\xff"}, {Name: "b\xfe"},
	}}); err != nil {
		t.Fatal(err)
	}
	got := gather(t, c)
	maps.DeleteFunc(got, func(key string, _ float64) bool { return !strings.Contains(key, "subscriber") })
	want := map[string]float64{
		"tarn_subscriber_pending{replica=x,subscriber=a}": 5, "tarn_subscriber_lag_seconds{replica=x,subscriber=a}": 60,
		"tarn_subscriber_pending{replica=x,subscriber=changes}": 1, "tarn_subscriber_lag_seconds{replica=x,subscriber=changes}": 0,
		"tarn_subscriber_pending{replica=x,subscriber=b?}": 0, "tarn_subscriber_lag_seconds{replica=x,subscriber=b?}": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFreshWithin(t *testing.T) {
	aged := fake{health: tarn.Health{Synced: true, State: tarn.StateWatching, LastContact: time.Unix(1, 0), Age: 2 * time.Minute}}
	for _, test := range []struct {
		within time.Duration
		want   float64
	}{{0, 1}, {time.Minute, 0}, {time.Hour, 1}} {
		c := metrics.NewCollector(metrics.Options{FreshWithin: test.within})
		if err := c.Add("x", aged); err != nil {
			t.Fatal(err)
		}
		series := gather(t, c)
		if series["tarn_fresh{replica=x}"] != test.want || series["tarn_age_seconds{replica=x}"] != 120 {
			t.Errorf("within %s: %v", test.within, series)
		}
	}
}

func TestAddAndRemove(t *testing.T) {
	c := metrics.NewCollector(metrics.Options{})
	decoded := func() metrics.Decoded { return metrics.Decoded{} }
	pool := func() metrics.PoolStats { return metrics.PoolStats{} }
	disk := func() metrics.DiskStats { return metrics.DiskStats{} }
	bytes := func() int { return 1 }
	add := func(name string) []error {
		return []error{c.Add(name, fake{}), c.AddBytes(name, bytes), c.AddDecoding(name, decoded), c.AddPool(name, pool), c.AddDisk(name, disk)}
	}
	for _, err := range add("x") {
		if err != nil {
			t.Error(err)
		}
	}
	full := len(gather(t, c))
	for name, want := range map[string]string{"x": `"x" already`, "": "needs a name", "a\xff": "not UTF-8"} {
		for _, err := range add(name) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", name, err, want)
			}
		}
	}
	for _, err := range []error{c.Add("y", nil), c.AddBytes("y", nil), c.AddDecoding("y", nil), c.AddPool("y", nil), c.AddDisk("y", nil)} {
		if err == nil || !strings.Contains(err.Error(), `"y" is nil`) {
			t.Error(err)
		}
	}
	c.Remove("x")
	c.Remove("never there")
	if left := gather(t, c); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	add("x")
	if again := len(gather(t, c)); again != full || full < 15 {
		t.Errorf("%d series, %d before", again, full)
	}
}

// Informers of all kinds are shown, with the names of their handlers.
func TestInformers(t *testing.T) {
	server := newServer(t)
	if err := server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(server.Config()), 0)
	made := factory.Core().V1().ConfigMaps().Informer()
	if _, err := made.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())

	http, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(server.Config(), http)
	if err != nil {
		t.Fatal(err)
	}
	managed, err := ctrlcache.NewCache(server.Config(), ctrl.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- managed.Start(ctx) }()
	informer, err := managed.GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	if !managed.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync")
	}
	shared, ok := informer.(cache.SharedInformer)
	if !ok {
		t.Fatalf("%T is no shared informer", informer)
	}

	c := metrics.NewCollector(metrics.Options{})
	for name, informer := range map[string]cache.SharedInformer{"made": made, "managed": shared} {
		replica, ok := cache.ReplicaOf(informer)
		if !ok {
			t.Fatalf("%s has no replica", name)
		}
		if err := c.Add(name, replica); err != nil {
			t.Fatal(err)
		}
	}
	series := gather(t, c)
	for _, name := range []string{"made", "managed"} {
		if series["tarn_objects{replica="+name+"}"] != 1 || series["tarn_synced{replica="+name+"}"] != 1 {
			t.Errorf("%s: %v", name, series)
		}
	}
	named := false
	for key := range series {
		named = named || strings.HasPrefix(key, "tarn_subscriber_pending{replica=made,subscriber=") && strings.Contains(key, "TestInformers")
	}
	if !named {
		t.Errorf("the handler is not named: %v", series)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
