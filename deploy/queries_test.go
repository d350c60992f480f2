package deploy

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/prometheus/promql/parser"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/metrics/relaymetrics"
	"github.com/tarnproject/tarn/relay"
)

// metricName is the label that Prometheus keeps the name of a metric in.
const metricName = "__name__"

// exposed returns the labels of each metric of a relay that has had requests of every sort.
// Prometheus adds the labels job and instance.
func exposed(t *testing.T) map[string]map[string]bool {
	t.Helper()
	origin := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer origin.Close()
	r, err := relay.New(relay.Options{
		Config: origin.Config(), Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}},
		DrainTime: time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
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
	get := func(path, token string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
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
	watch := get("/api/v1/configmaps?watch=1&resourceVersion=0", "x")
	defer watch.Body.Close()
	for _, path := range []string{"/api/v1/configmaps?resourceVersion=0", "/api/v1/namespaces/default/configmaps/none", "/api/v1/nodes"} {
		get(path, "x").Body.Close()
	}
	if err := origin.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	origin.SetTokens()
	get("/api/v1/configmaps?resourceVersion=0", "another").Body.Close() // cannot be reviewed

	registry := prometheus.NewRegistry()
	registry.MustRegister(relaymetrics.NewCollector(r), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]bool{}
	for _, family := range families {
		known := map[string]bool{"job": true, "instance": true}
		for _, l := range family.GetMetric()[0].GetLabel() {
			known[l.GetName()] = true
		}
		found[family.GetName()] = known
	}
	return found
}

// queries returns all expressions of the dashboard and of the alerts, by their titles.
func queries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("grafana/relay.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*")
	for _, panel := range board.Panels {
		for i, target := range panel.Targets {
			found["panel "+panel.Title+" "+string(rune('A'+i))] = variables.Replace(target.Expr)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary, Description string }
			}
		}
	}
	if text, err = os.ReadFile("prometheus/relay-rules.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			found["alert "+rule.Alert] = rule.Expr
			if rule.Annotations.Summary == "" || rule.Annotations.Description == "" {
				t.Errorf("%s does not say what to do", rule.Alert)
			}
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d queries were found", len(found))
	}
	return found
}

// Every query parses, and names metrics, labels and causes that a relay has.
func TestQueries(t *testing.T) {
	known := exposed(t)
	causes, err := os.ReadFile("../relay/stats.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for title, query := range queries(t) {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		// Labels by which is grouped or joined must be those of a metric in the query.
		all := map[string]bool{}
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			of, exists := known[selector.Name]
			if !exists {
				t.Errorf("%s: a relay has no metric %s", title, selector.Name)
			}
			used[selector.Name] = true
			maps.Copy(all, of)
			for _, m := range selector.LabelMatchers {
				if m.Name != metricName && !of[m.Name] {
					t.Errorf("%s: %s has no label %s", title, selector.Name, m.Name)
				}
				if m.Name == "cause" && strings.HasPrefix(selector.Name, "tarn_relay_") && !strings.Contains(string(causes), `"`+m.Value+`"`) {
					t.Errorf("%s: nothing has the cause %q", title, m.Value)
				}
			}
			return nil
		})
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			var grouped []string
			switch n := node.(type) {
			case *parser.AggregateExpr:
				grouped = n.Grouping
			case *parser.BinaryExpr:
				if n.VectorMatching != nil {
					grouped = n.VectorMatching.MatchingLabels
				}
			}
			for _, name := range grouped {
				if !all[name] {
					t.Errorf("%s: no metric in it has the label %s", title, name)
				}
			}
			return nil
		})
	}
	for name := range known {
		if strings.HasPrefix(name, "tarn_relay_") && name != "tarn_relay_log_events" && !used[name] {
			t.Errorf("nothing shows %s", name)
		}
	}
	text, err := os.ReadFile("grafana/relay.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`label_values\((\w+),`).FindAllSubmatch(text, -1) {
		if known[string(name[1])] == nil {
			t.Errorf("a variable of the dashboard reads %s, which no relay has", name[1])
		}
	}
}
