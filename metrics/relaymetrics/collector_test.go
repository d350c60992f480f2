package relaymetrics_test

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/metrics/relaymetrics"
	"github.com/tarnproject/tarn/relay"
)

func TestMain(m *testing.M) {
	// klog's flusher lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// A relay with traffic shows every metric of the package's documentation, with its type and
// labels, and no others.
func TestCollector(t *testing.T) {
	origin := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer origin.Close()
	r, err := relay.New(relay.Options{
		Config: origin.Config(), Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}},
		Directory: t.TempDir(), CallerRequests: 200, DrainTime: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if err := r.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r)
	defer server.Close()
	get := func(path, token, agent string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", agent)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	defer http.DefaultClient.CloseIdleConnections()
	// 120 programs watch; the series of the last twenty are one.
	var bodies []io.Closer
	defer func() {
		for _, body := range bodies {
			body.Close()
		}
	}()
	var first io.Reader
	for i := range 120 {
		resp := get("/api/v1/configmaps?watch=1&resourceVersion=0", "x", fmt.Sprintf("agent-%d/v1", i))
		bodies = append(bodies, resp.Body)
		if i == 0 {
			first = resp.Body
		}
	}
	for _, path := range []string{"/api/v1/configmaps?resourceVersion=0", "/api/v1/namespaces/default/configmaps/none", "/api/v1/nodes"} {
		get(path, "x", "lister").Body.Close()
	}
	if err := origin.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	origin.SetTokens() // from here on the relay cannot ask who a caller is
	get("/api/v1/configmaps?resourceVersion=0", "another", "lister").Body.Close()

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(relaymetrics.NewCollector(r))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	values := map[string]float64{}
	agents := map[string]float64{}
	for _, family := range families {
		kind := strings.ToLower(family.GetType().String())
		m := family.GetMetric()[0]
		labels := []string{}
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName())
		}
		found[family.GetName()] = kind + " " + strings.Join(labels, ",")
		values[family.GetName()] = value(m)
		if family.GetName() == "tarn_relay_client_watches" {
			for _, m := range family.GetMetric() {
				agents[m.GetLabel()[0].GetValue()] = value(m)
			}
		}
	}
	documented := documentedNames(t)
	for name, want := range documented {
		if found[name] != want {
			t.Errorf("%s is %q, documented as %q", name, found[name], want)
		}
	}
	for name := range found {
		if strings.HasPrefix(name, "tarn_relay_") && documented[name] == "" {
			t.Errorf("%s is not documented", name)
		}
	}
	for name, want := range map[string]float64{"tarn_relay_watches": 120, "tarn_relay_ready": 1, "tarn_objects": 1, "tarn_fresh": 1, "tarn_relay_passed_total": 1, "tarn_relay_log_events": 1} {
		if values[name] != want {
			t.Errorf("%s is %v, want %v", name, values[name], want)
		}
	}
	if len(agents) != 101 || agents["other"] != 20 || agents["agent-0"] != 1 {
		t.Errorf("%d series, the rest has %v", len(agents), agents["other"])
	}
	if values["tarn_relay_deliveries_total"] < 1 || values["tarn_relay_sent_bytes_total"] < 100 || values["tarn_relay_received_bytes_total"] < 100 {
		t.Errorf("%v", values)
	}
}

func value(m *dto.Metric) float64 {
	if m.GetCounter() != nil {
		return m.GetCounter().GetValue()
	}
	return m.GetGauge().GetValue()
}

func documentedNames(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(file.Doc.Text()) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "\ttarn_relay_") && len(fields) > 3 {
			labels := strings.Split(strings.TrimPrefix(fields[2], "-"), ",")
			slices.Sort(labels)
			found[fields[0]] = fields[1] + " " + strings.Join(labels, ",")
		}
	}
	if len(found) == 0 {
		t.Fatal("no names are documented")
	}
	return found
}
