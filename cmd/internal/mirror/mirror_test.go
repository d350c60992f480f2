package mirror

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

func TestMirror(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("shop", "a", "b")
		m, end := r.start(Options{}, "cm", "namespaces", "deploy")
		r.synced(m)
		if len(m.Tables()) != 3 || m.Tables()[1].Resource().Name() != "namespaces" {
			r.Errorf("tables %v", m.Tables())
		}
		maps := r.table(m, "configmaps")
		if got := keys(maps); got != "shop/a shop/b" {
			r.Errorf("has %s", got)
		}
		if got := keys(r.table(m, "namespaces")); !strings.Contains(got, "shop") {
			r.Errorf("has %s", got)
		}
		if _, ok := m.Table("pods"); ok {
			r.Error("a table that was not asked for")
		}
		r.put("shop", "c")
		if err := maps.Replica().WaitFor(r.Context(), tarn.Version(r.server.Version())); err != nil {
			r.Fatal(err)
		}
		if object, ok := maps.Store().Get("shop/c"); !ok || object.GetKind() != "ConfigMap" {
			r.Errorf("%v", object)
		}
		if maps.Source().Collection().Resource.Resource != "configmaps" || len(maps.Sources()) != 1 || maps.Transform() != nil {
			r.Errorf("source %v", maps.Source().Collection())
		}
		for _, table := range m.Tables() {
			if s := table.Status(); !s.Health.Synced || s.Objects != table.Store().Len() || s.Received != s.Objects || s.Expected != s.Objects {
				r.Errorf("%+v", s)
			}
		}
		if m.Client().Pool() == nil || len(m.Problems()) != 0 {
			r.Errorf("problems %v", m.Problems())
		}
		end()
		if got := keys(maps); got != "shop/a shop/b shop/c" || maps.Status().Health.State != tarn.StateStopped {
			r.Errorf("after the end: %s, %v", got, maps.Status().Health)
		}
	})
}

// Namespaces narrow what is in namespaces, and nothing else.
func TestNamespaces(t *testing.T) {
	inBubble(t, func(r *rig) {
		for _, namespace := range []string{"a", "b", "c"} {
			r.put(namespace, "one")
		}
		m, end := r.start(Options{Namespaces: []string{"c", "a", "c"}}, "configmaps", "namespaces")
		defer end()
		r.synced(m)
		maps := r.table(m, "configmaps")
		if got := keys(maps); got != "a/one c/one" {
			r.Errorf("has %s", got)
		}
		if len(maps.Sources()) != 2 || maps.Source().Collection().Namespace != "a" || len(maps.Status().Health.Sections) != 2 {
			r.Errorf("sources %v", maps.Sources())
		}
		if got := keys(r.table(m, "namespaces")); !strings.Contains(got, "b c") {
			r.Errorf("has %s", got)
		}
	})
}

func TestSelectors(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("a", "one", "two")
		if err := r.server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "three", Labels: map[string]string{"app": "web"}}}); err != nil {
			r.Fatal(err)
		}
		for _, test := range []struct {
			opts Options
			want string
		}{
			{Options{LabelSelector: "app=web"}, "a/three"},
			{Options{FieldSelector: "metadata.name=two"}, "a/two"},
			{Options{Namespaces: []string{""}}, "a/one a/three a/two"},
		} {
			m, end := r.start(test.opts, "configmaps")
			r.synced(m)
			if got := keys(r.table(m, "configmaps")); got != test.want {
				r.Errorf("has %s, want %s", got, test.want)
			}
			end()
		}
	})
}

func TestMistakes(t *testing.T) {
	pods := Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespaced: true}
	for _, test := range []struct {
		want      string
		cfg       *rest.Config
		resources []Resource
		opts      Options
	}{
		{"the config is nil", nil, []Resource{pods}, Options{}},
		{"no resources to copy", &rest.Config{}, nil, Options{}},
		{"pods is asked for twice", &rest.Config{}, []Resource{pods, pods}, Options{}},
		{`the label selector "a in" makes no sense`, &rest.Config{}, []Resource{pods}, Options{LabelSelector: "a in"}},
		{`the field selector "a" makes no sense`, &rest.Config{}, []Resource{pods}, Options{FieldSelector: "a"}},
		{"names all namespaces beside single ones", &rest.Config{}, []Resource{pods}, Options{Namespaces: []string{"a", ""}}},
		{"cannot be part of a path", &rest.Config{}, []Resource{pods}, Options{Namespaces: []string{"a/b"}}},
		{"no connection can be made", &rest.Config{Host: "x", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("?"), KeyData: []byte("?")}}, []Resource{pods}, Options{}},
		{"is not usable", &rest.Config{Host: "::"}, []Resource{pods}, Options{}},
	} {
		if _, err := Start(t.Context(), test.cfg, test.resources, test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// The error names the tables that are not synced, with the reason; a common cause is
// given once.
func TestNotSynced(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			switch {
			case strings.HasSuffix(req.URL.Path, "/configmaps"):
				return next.RoundTrip(req)
			case strings.HasSuffix(req.URL.Path, "/secrets"):
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return answer(req, http.StatusForbidden, metav1.StatusReasonForbidden), nil
		})
		m, end := r.start(Options{}, "pods", "configmaps", "nodes", "secrets", "services")
		defer end()
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		err := m.WaitSynced(ctx)
		e, ok := errors.AsType[*NotSynced](err)
		if !ok || strings.Join(e.Tables, " ") != "pods nodes secrets services" {
			r.Fatalf("%v", err)
		}
		text := err.Error()
		if !strings.HasPrefix(text, "4 of 5 tables not synced: pods: not synced: ") || strings.Count(text, "no /api/v1/") != 1 ||
			!strings.Contains(text, "(and likewise nodes, services); secrets: not synced: the source has not answered") || strings.Contains(text, "\n") {
			r.Error(text)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("%v does not say that time is up", err)
		}
	})
}

// Until it is synced, a table shows how many of the expected objects have arrived.
func TestProgress(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		inBubble(t, func(r *rig) {
			for range 3 {
				r.put("a", "1", "2", "3")
			}
			release := make(chan struct{})
			r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				query := req.URL.Query()
				if query.Get("sendInitialEvents") != "" && !watchList {
					return answer(req, http.StatusBadRequest, metav1.StatusReasonBadRequest), nil
				}
				resp, err := next.RoundTrip(req)
				if err == nil && query.Get("limit") != "1" {
					resp.Body = &held{resp.Body, release}
				}
				return resp, err
			})
			m, end := r.start(Options{}, "configmaps")
			defer end()
			table := r.table(m, "configmaps")
			synctest.Wait()
			if s := table.Status(); s.Health.Synced || s.Objects != 0 || s.Received != 0 || s.Expected != 3 {
				r.Errorf("held: %+v", s)
			}
			close(release)
			r.synced(m)
			if s := table.Status(); s.Received != 3 || s.Expected != 3 || table.inputs.intake().count() != 3 {
				r.Errorf("synced: %+v, counted %d", s, table.inputs.intake().count())
			}
			r.put("a", "4")
			synctest.Wait()
			if s := table.Status(); s.Objects != 4 || s.Received != 4 || s.Expected != 4 || table.inputs.intake().count() != 3 {
				r.Errorf("later: %+v, counted %d", s, table.inputs.intake().count())
			}
		})
	}
}

// How much there will be is unknown where the server does not say.
func TestExpectedUnknown(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("a", "1", "2", "3")
		for _, test := range []struct {
			refused bool
			opts    Options
			want    int
		}{
			{false, Options{}, 3},
			{false, Options{Namespaces: []string{"a", "b"}}, 3},
			{false, Options{FieldSelector: "metadata.name!=2"}, 0},
			{true, Options{}, 0},
		} {
			r.interfere(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				if req.URL.Query().Get("limit") == "1" && !test.refused {
					return next.RoundTrip(req)
				}
				return answer(req, http.StatusForbidden, metav1.StatusReasonForbidden), nil
			})
			m, end := r.start(test.opts, "configmaps")
			synctest.Wait()
			if s := r.table(m, "configmaps").Status(); s.Expected != test.want {
				r.Errorf("%+v: expected %d, want %d", test.opts, s.Expected, test.want)
			}
			end()
		}
	})
}

// A server that says nothing for longer than it may is asked again.
func TestSilenceLimit(t *testing.T) {
	for limit, want := range map[time.Duration]int64{0: 1, 10 * time.Second: 4} {
		inBubble(t, func(r *rig) {
			m, end := r.start(Options{SilenceLimit: limit}, "configmaps")
			defer end()
			r.synced(m)
			time.Sleep(35 * time.Second) // less than until a bookmark
			if got := r.table(m, "configmaps").Replica().Health().Watches; got != want {
				r.Errorf("with a limit of %s there were %d watches, want %d", limit, got, want)
			}
		})
	}
}
