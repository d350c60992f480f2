package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/metrics"
)

func TestMain(m *testing.M) {
	// klog's flusher lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// documented is the table of the package's documentation: type and labels of
// each name.
func documented(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(file.Doc.Text()) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "\ttarn_") && len(fields) > 3 {
			found[fields[0]] = fields[1] + " " + fields[2]
		}
	}
	return found
}

// What is documented is what is registered, and nothing else.
func TestDocumentedNames(t *testing.T) {
	descs := make(chan *prometheus.Desc, 100)
	metrics.NewCollector(metrics.Options{}).Describe(descs)
	close(descs)
	described := map[string]string{}
	for d := range descs {
		// A Desc shows its name and labels in no other way.
		text := d.String()
		name, labels := between(text, `fqName: "`, `"`), between(text, "variableLabels: {", "}")
		described[name] = labels
	}
	table := documented(t)
	if !slices.Equal(slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(table))) || len(table) < 20 {
		t.Errorf("described %v, documented %v", described, table)
	}
	for name, entry := range table {
		kind, labels, _ := strings.Cut(entry, " ")
		if labels != described[name] {
			t.Errorf("%s has the labels %q, documented are %q", name, described[name], labels)
		}
		if (kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, kind)
		}
	}
}

func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

// gather reads all series, by name and labels, and holds the types against the
// documentation.
func gather(t *testing.T, c *metrics.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	table := documented(t)
	series := map[string]float64{}
	for _, f := range families {
		kind, _, _ := strings.Cut(table[f.GetName()], " ")
		if got := strings.ToLower(f.GetType().String()); got != kind {
			t.Errorf("%s is a %s, documented as %q", f.GetName(), got, kind)
		}
		for _, m := range f.GetMetric() {
			series[f.GetName()+labelsOf(m)] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return series
}

func labelsOf(m *dto.Metric) string {
	var values []string
	for _, l := range m.GetLabel() {
		values = append(values, l.GetName()+"="+l.GetValue())
	}
	return "{" + strings.Join(values, ",") + "}"
}

// line is a connection to a server, which can be cut and led elsewhere.
type line struct {
	mu      sync.Mutex
	to      http.RoundTripper
	down    bool
	expire  bool
	streams []io.Closer
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	to, down, expire := l.to, l.down, l.expire
	watch := r.URL.Query().Get("watch") != ""
	l.expire = l.expire && !watch
	l.mu.Unlock()
	switch {
	case down:
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case expire && watch:
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
		return &http.Response{StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), Request: r}, nil
	}
	resp, err := to.RoundTrip(r)
	if err == nil {
		resp.Body = poisoned{resp.Body}
		l.mu.Lock()
		l.streams = append(l.streams, resp.Body)
		l.mu.Unlock()
	}
	return resp, err
}

// set changes the line and erases the rest.
func (l *line) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	for _, s := range l.streams {
		s.Close()
	}
	l.streams = nil
}

// poisoned makes no JSON of some objects.
type poisoned struct{ io.ReadCloser }

func (p poisoned) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	copy(b, bytes.ReplaceAll(b[:n], []byte(`"poison"`), []byte(`poison!!`)))
	return n, err
}

var widgets = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}

func widget(name, note string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "default", "name": name},
		"spec": map[string]any{"note": note, "parts": []any{"a part that all have", "another part that all have"}},
	}}
}

func newServer(t *testing.T) *apiserver.Server {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	t.Cleanup(server.Close)
	if err := server.Register(apiserver.Kind{Group: "example.org", Version: "v1", Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	return server
}

func newSource(t *testing.T, client *kube.Client) *kube.Source[*unstructured.Unstructured] {
	t.Helper()
	source, err := kube.NewSource[*unstructured.Unstructured](client, kube.Collection{Resource: widgets, Object: reflect.TypeFor[*unstructured.Unstructured]()}, kube.SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// TestEveryMetric makes everything happen to a replica that can, and expects each
// metric to show it.
func TestEveryMetric(t *testing.T) {
	changed := map[string]bool{}
	compare := func(before, after map[string]float64) {
		for key, value := range after {
			if old, there := before[key]; !there || old != value {
				name, _, _ := strings.Cut(key, "{")
				changed[name] = true
			}
		}
	}
	synctest.Test(t, func(t *testing.T) { badDay(t, compare) })
	synctest.Test(t, func(t *testing.T) { badDisk(t, compare) })
	badEngine(t, compare)
	synctest.Test(t, func(t *testing.T) { shards(t, compare) })
	decodeSeconds(t, compare)
	badFleet(t, compare)
	for name := range documented(t) {
		if !changed[name] {
			t.Errorf("%s has never changed", name)
		}
	}
}

// observed is a replica; the tests use only its Health.
type observed struct{ health tarn.Health }

func (o *observed) Health() tarn.Health             { return o.health }
func (*observed) Len() int                          { return 0 }
func (*observed) Subscribers() []tarn.SubscriberLag { return nil }

// badFleet has one of two clusters fail, and expects that each has its own series.
func badFleet(t *testing.T, compare func(before, after map[string]float64)) {
	now := time.Now()
	replica := &observed{tarn.Health{Sections: []tarn.Health{
		{Section: "east", Synced: true, LastContact: now},
		{Section: "west", Synced: true, LastContact: now},
	}}}
	c := metrics.NewCollector(metrics.Options{})
	if err := c.AddClusters("pods", replica); err != nil {
		t.Fatal(err)
	}
	if c.AddClusters("pods", replica) == nil || c.AddClusters("none", nil) == nil {
		t.Error("a name was taken twice, or nothing was shown")
	}
	before := gather(t, c)
	replica.health.Sections[1] = tarn.Health{Section: "west", Err: errors.New("away"), AllFailures: 3, LastContact: now, Age: time.Hour, Events: 5}
	after := gather(t, c)
	compare(before, after)
	for series, value := range before {
		if strings.Contains(series, "east") && after[series] != value {
			t.Errorf("%s changed with another cluster", series)
		}
	}
	c.Remove("pods")
	if left := gather(t, c); len(left) != 0 {
		t.Errorf("after it was removed: %v", left)
	}
}

func badDay(t *testing.T, compare func(before, after map[string]float64)) {
	older, server := newServer(t), newServer(t)
	put := func(objects ...*unstructured.Unstructured) {
		t.Helper()
		for _, o := range objects {
			if err := server.Put(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 20 {
		put(widget(fmt.Sprint("w", i), "fine"))
	}
	connection := &line{to: server.Config().Transport}
	client, err := kube.NewClient(&rest.Config{Host: server.Config().Host, QPS: -1, Transport: connection})
	if err != nil {
		t.Fatal(err)
	}
	source := newSource(t, client)
	replica, err := tarn.NewReplica(source, memory.New[*unstructured.Unstructured](), tarn.Options[*unstructured.Unstructured]{
		Name: "widgets", Logger: slog.New(slog.DiscardHandler), WatchList: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	if _, err := replica.Subscribe(func(tarn.Change[*unstructured.Unstructured]) { <-release }, tarn.SubscribeOptions{Name: "stalled"}); err != nil {
		t.Fatal(err)
	}

	c := metrics.NewCollector(metrics.Options{})
	perObject := 0
	for _, err := range []error{
		c.Add("widgets", replica),
		c.AddBytes("widgets", func() int { return perObject }),
		c.AddDecoding("widgets", metrics.Decoding(source.Decoded)),
		c.AddPool("widgets", metrics.Pooling(client.Pool().Stats)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]float64{}
	look := func(phase string, want map[string]float64) {
		t.Helper()
		synctest.Wait()
		series := gather(t, c)
		if len(before) > 0 {
			compare(before, series)
		}
		before = series
		for key, value := range want {
			if got, ok := series[key]; !ok || got != value {
				t.Errorf("%s: %s is %v (there: %v), want %v", phase, key, got, ok, value)
			}
		}
	}
	const me, stalled = "{replica=widgets}", "{replica=widgets,subscriber=stalled}"
	look("before the start", map[string]float64{
		"tarn_objects" + me: 0, "tarn_synced" + me: 0, "tarn_fresh" + me: 0, "tarn_failing" + me: 0, "tarn_pool_parts{pool=widgets}": 0,
		"tarn_subscriber_pending" + stalled: 0, "tarn_decoded_objects_total{source=widgets}": 0,
	})

	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = replica.Run(ctx) }()
	defer func() {
		cancel()
		close(release)
		<-replica.Done()
	}()
	perObject = 700
	look("synced", map[string]float64{
		"tarn_objects" + me: 20, "tarn_synced" + me: 1, "tarn_fresh" + me: 1, "tarn_object_bytes" + me: 700, "tarn_watches_total" + me: 1,
		"tarn_lists_total{cause=start,replica=widgets}": 1, "tarn_subscriber_pending" + stalled: 20,
		"tarn_decoded_objects_total{source=widgets}": 21, // and a bookmark
	})

	time.Sleep(10 * time.Second)
	look("quiet", map[string]float64{"tarn_age_seconds" + me: 10, "tarn_watch_age_seconds" + me: 10, "tarn_failures_total" + me: 0, "tarn_subscriber_lag_seconds" + stalled: 10})

	put(widget("bad", "poison"), widget("later", "fine"))
	look("events, one of them bad", map[string]float64{
		"tarn_objects" + me: 21, "tarn_bad_objects" + me: 1, "tarn_events_total" + me: 2, "tarn_age_seconds" + me: 0,
		"tarn_subscriber_pending" + stalled: 21,
	})

	connection.set(func() { connection.down = true })
	time.Sleep(time.Minute)
	look("the server is unreachable", map[string]float64{"tarn_failing" + me: 1, "tarn_fresh" + me: 0, "tarn_synced" + me: 1})
	failed := before["tarn_failures_total"+me]
	if failed < 2 {
		t.Errorf("%v failures", failed)
	}
	if age, there := before["tarn_watch_age_seconds"+me]; there {
		t.Errorf("a watch is %v s old, and there is no server", age)
	}

	put(widget("later", "changed"))
	server.Compact()
	connection.set(func() { connection.down = false })
	time.Sleep(5 * time.Minute)
	look("it is back, and has forgotten what happened", map[string]float64{
		"tarn_failing" + me: 0, "tarn_lists_total{cause=expired,replica=widgets}": 1,
	})

	if now := before["tarn_failures_total"+me]; now < failed {
		t.Errorf("the recovery took failures back: %v of %v are left", now, failed)
	}
	if age, there := before["tarn_watch_age_seconds"+me]; !there || age <= 0 || age > 5*60 {
		t.Errorf("the watch that was opened after the recovery is %v s old (there: %v)", age, there)
	}

	mutate(t, replica, client.Pool())
	time.Sleep(time.Minute)
	look("a program has written to objects", map[string]float64{
		"tarn_damaged_objects_total" + me: 21, "tarn_repaired_objects_total" + me: 21,
	})
	connection.set(func() { connection.to, connection.expire = older.Config().Transport, true })
	time.Sleep(5 * time.Minute)
	look("it was restored from a backup", map[string]float64{
		"tarn_rewinds_total" + me: 1, "tarn_lists_total{cause=rewound,replica=widgets}": 1, "tarn_objects" + me: 0,
	})
}

// decodeSeconds needs time that passes by itself.
func decodeSeconds(t *testing.T, compare func(before, after map[string]float64)) {
	server := newServer(t)
	if err := server.Put(widget("one", "fine")); err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	c := metrics.NewCollector(metrics.Options{})
	if err := c.AddDecoding("widgets", metrics.Decoding(client.Decoded)); err != nil {
		t.Fatal(err)
	}
	before := gather(t, c)
	if _, err := newSource(t, client).List(t.Context(), tarn.ListQuery{}); err != nil {
		t.Fatal(err)
	}
	compare(before, gather(t, c))
}

// mutate makes a stray write, and lets the pool find it.
func mutate(t *testing.T, replica *tarn.Replica[*unstructured.Unstructured], pool *wire.Pool) {
	t.Helper()
	for _, object := range replica.All() {
		object.Object["spec"].(map[string]any)["parts"].([]any)[0] = "somebody's own"
	}
	if pool.Verify(); pool.Stats().StrayWrites == 0 {
		t.Fatal("the pool does not notice")
	}
}
