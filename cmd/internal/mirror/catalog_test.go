package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/apiserver"
)

func TestFind(t *testing.T) {
	inBubble(t, func(r *rig) {
		if err := r.server.Register(
			apiserver.Kind{Group: "example.org", Version: "v1", Kind: "Pod"},
			apiserver.Kind{Group: "example.org", Version: "v1", Kind: "Widget"},
		); err != nil {
			r.Fatal(err)
		}
		if err := r.server.Put(twoVersions()); err != nil {
			r.Fatal(err)
		}
		c, err := Discover(r.Context(), r.config())
		if err != nil {
			r.Fatal(err)
		}
		for _, test := range []struct{ name, want string }{
			{"pods", "/v1 pods"},
			{"pod", "/v1 pods"},
			{"po", "/v1 pods"},
			{"Pod", "/v1 pods"},
			{"pods.", "/v1 pods"},
			{"pods.v1", "/v1 pods"},
			{"pods.v1.", "/v1 pods"},
			{"pods.example.org", "example.org/v1 pods"},
			{"deployments.apps", "apps/v1 deployments"},
			{"deploy.apps", "apps/v1 deployments"},
			{"Deployments.v1.apps", "apps/v1 deployments"},
			{"widget", "example.org/v1 widgets"},
			{"widgets.example", "example.org/v1 widgets"},
			{"events", "/v1 events"},
			{"events.events.k8s.io", "events.k8s.io/v1 events"},
			{"gears", "example.org/v1 gears"},
			{"gears.v1alpha1.example.org", "example.org/v1alpha1 gears"},
		} {
			found, err := c.Find(test.name)
			if err != nil {
				r.Errorf("%s: %v", test.name, err)
			} else if got := found.GVR.GroupVersion().String() + " " + found.GVR.Resource; strings.TrimPrefix(got, "/") != strings.TrimPrefix(test.want, "/") {
				r.Errorf("%s is %s, want %s", test.name, got, test.want)
			}
		}
		for _, test := range []struct {
			name    string
			nearest string
		}{
			{"pdos", "pods"}, {"deploments", "deployments.apps"}, {"deployments.app.k8s.io", ""}, {"configmap s", "configmaps"},
			{"widgts", "widgets.example.org"}, {"xylophones", ""}, {"", ""}, {"secretes", "secrets"}, {"statefulset.aps", "statefulsets.apps"},
		} {
			_, err := c.Find(test.name)
			unknown, ok := errors.AsType[*UnknownResource](err)
			if !ok {
				r.Errorf("%q: %v", test.name, err)
				continue
			}
			if unknown.Name != test.name || len(unknown.Nearest) > maxNearest {
				r.Errorf("%+v", unknown)
			}
			if test.nearest != "" && (len(unknown.Nearest) == 0 || unknown.Nearest[0] != test.nearest || !strings.Contains(err.Error(), "did you mean "+test.nearest)) {
				r.Errorf("%q: %v, want %s first", test.name, err, test.nearest)
			}
			if test.nearest == "" && !strings.Contains(err.Error(), "is its CRD installed?") && len(unknown.Nearest) == 0 {
				r.Errorf("%q: %v", test.name, err)
			}
		}
	})
}

// What cannot be listed and watched is found last of all, and not offered.
func TestNotCopyable(t *testing.T) {
	group := func(name string) *metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		return &metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	list := func(group, name string, verbs ...string) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: group + "/v1", APIResources: []metav1.APIResource{{Name: name, Kind: "Thing", Verbs: verbs}, {Name: name + "/status", Verbs: verbs}}}
	}
	c := newCatalog([]*metav1.APIGroup{group("a"), group("b"), group("c")}, []*metav1.APIResourceList{
		list("a", "reviews", "create", "get"), list("b", "things", "get", "list"), list("c", "things", "get", "list", "watch"),
		{GroupVersion: "a/b/c/d"},
	})
	if _, err := c.Find("reviews"); err == nil || !strings.Contains(err.Error(), "reviews.a cannot be copied: the server offers no list and watch of it, only create, get") {
		t.Error(err)
	}
	if found, err := c.Find("things"); err != nil || found.Name() != "things.c" {
		t.Errorf("%s, %v", found.Name(), err)
	}
	if all := c.All(); len(all) != 1 || all[0].Name() != "things.c" {
		t.Errorf("%v", all)
	}
	_, err := Start(t.Context(), &rest.Config{}, []Resource{c.preferred[0]}, Options{})
	if err == nil || !strings.Contains(err.Error(), "cannot be copied") {
		t.Error(err)
	}
}

func twoVersions() *apiextensions.CustomResourceDefinition {
	anything := &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object"}}
	return &apiextensions.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "gears.example.org"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "example.org", Scope: apiextensions.ClusterScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "gears", Singular: "gear", Kind: "Gear", ListKind: "GearList", Categories: []string{"machines"}},
			Versions: []apiextensions.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: anything}, {Name: "v1alpha1", Served: true, Schema: anything},
			},
		},
	}
}

func TestAllAndCategory(t *testing.T) {
	inBubble(t, func(r *rig) {
		if err := r.server.Put(twoVersions()); err != nil {
			r.Fatal(err)
		}
		c, err := Discover(r.Context(), r.config())
		if err != nil {
			r.Fatal(err)
		}
		var names []string
		for _, resource := range c.All() {
			if !resource.Can("list") || !resource.Can("watch") || strings.Contains(resource.GVR.Resource, "/") {
				r.Errorf("%s cannot be copied", resource.Name())
			}
			names = append(names, resource.Name())
		}
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			r.Errorf("not sorted, or not unique: %v", names)
		}
		for _, want := range []string{"pods", "deployments.apps", "events", "events.events.k8s.io", "gears.example.org"} {
			if !slices.Contains(names, want) {
				r.Errorf("no %s", want)
			}
		}
		if machines := c.Category("Machines"); len(machines) != 1 || machines[0].GVR.Version != "v1" || machines[0].GVK().String() != "example.org/v1, Kind=Gear" || machines[0].Namespaced {
			r.Errorf("machines: %+v", machines)
		}
		all := c.Category("all")
		if !slices.ContainsFunc(all, func(x Resource) bool { return x.Name() == "pods" }) || len(all) >= len(names) {
			r.Errorf("all: %v", all)
		}
		if c.Category("none") != nil || len(c.Warnings()) != 0 {
			r.Errorf("%v, %v", c.Category("none"), c.Warnings())
		}
	})
}

// A part of the API that is down does not hide the rest.
func TestPartialDiscovery(t *testing.T) {
	aggregated := func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil || req.URL.Path != "/apis" {
			return resp, err
		}
		defer resp.Body.Close()
		var list apidiscovery.APIGroupDiscoveryList
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			return nil, err
		}
		for i, group := range list.Items {
			if group.Name == "apps" {
				list.Items[i].Versions[0].Freshness = apidiscovery.DiscoveryFreshnessStale
				list.Items[i].Versions[0].Resources = nil
			}
		}
		data, err := json.Marshal(list)
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(string(data))), int64(len(data))
		return resp, err
	}
	plain := func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.URL.Path == "/apis/apps/v1" {
			return answer(req, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), nil
		}
		req = req.Clone(req.Context())
		req.Header.Set("Accept", "application/json")
		return next.RoundTrip(req)
	}
	for name, between := range map[string]func(*http.Request, http.RoundTripper) (*http.Response, error){"aggregated": aggregated, "plain": plain} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				r.interfere(between)
				c, err := Discover(r.Context(), r.config())
				if err != nil {
					r.Fatal(err)
				}
				if _, err := c.Find("pods"); err != nil {
					r.Error(err)
				}
				if _, err := c.Find("jobs.batch"); err != nil {
					r.Error(err)
				}
				if found, err := c.Find("deployments"); err == nil {
					r.Errorf("deployments are known as %v", found)
				}
				if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0].Error(), "the resources of apps/v1 are not known") {
					r.Errorf("warnings: %v", w)
				}
			})
		})
	}
}

func TestDiscoverFails(t *testing.T) {
	if _, err := Discover(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the config is nil") {
		t.Error(err)
	}
	if _, err := Discover(t.Context(), &rest.Config{Host: "::"}); err == nil {
		t.Error("a host that is none")
	}
	inBubble(t, func(r *rig) {
		r.interfere(func(req *http.Request, _ http.RoundTripper) (*http.Response, error) {
			return answer(req, http.StatusUnauthorized, metav1.StatusReasonUnauthorized), nil
		})
		if _, err := Discover(r.Context(), r.config()); err == nil || !strings.Contains(err.Error(), "cannot ask http://tarn.invalid what it offers") {
			r.Error(err)
		}
		r.interfere(nil)
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if _, err := Discover(ctx, r.config()); !errors.Is(err, context.Canceled) {
			r.Error(err)
		}
	})
}

// TestEditDistance compares with the definition.
func TestEditDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		x, y := len(a)-1, len(b)-1
		cost := 1
		if a[x] == b[y] {
			cost = 0
		}
		d := min(slow(a[:x], b)+1, slow(a, b[:y])+1, slow(a[:x], b[:y])+cost)
		if x > 0 && y > 0 && a[x] == b[y-1] && a[x-1] == b[y] {
			d = min(d, slow(a[:x-1], b[:y-1])+1)
		}
		return d
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := editDistance(a, b), slow(a, b); got != want {
			t.Errorf("from %q to %q: %d, want %d", a, b, got, want)
		}
	})
}
