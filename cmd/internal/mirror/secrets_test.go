package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

func secret(name, password string, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: annotations, Labels: map[string]string{"app": "web"}},
		Data:       map[string][]byte{"password": []byte(password), "user": []byte(password)},
	}
}

func TestSecretsAreHidden(t *testing.T) {
	const password = "correct horse battery staple"
	const coded = "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==" // of the password
	inBubble(t, func(r *rig) {
		if err := r.server.Register(apiserver.Kind{Group: "example.org", Version: "v1", Kind: "Secret"}); err != nil {
			r.Fatal(err)
		}
		var err error
		if r.catalog, err = Discover(r.Context(), r.config()); err != nil {
			r.Fatal(err)
		}
		foreign := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Secret", "data": map[string]any{"password": "open"},
			"metadata": map[string]any{"namespace": "shop", "name": "other"},
		}}
		if err := r.server.Put(
			secret("plain", password, nil),
			secret("applied", password, map[string]string{ondisk.LastApplied: coded, "team": "a"}),
			foreign,
		); err != nil {
			r.Fatal(err)
		}
		for _, show := range []bool{false, true} {
			for _, namespaces := range [][]string{nil, {"shop", "default"}} {
				m, end := r.start(Options{ShowSecrets: show, Namespaces: namespaces}, "secrets", "secrets.example.org")
				r.synced(m)
				table := r.table(m, "secrets")
				if err := r.server.Put(secret("later", fmt.Sprint(password, r.server.Version()), map[string]string{ondisk.LastApplied: coded})); err != nil {
					r.Fatal(err)
				}
				if err := table.Replica().WaitForKey(r.Context(), "shop/later", tarn.Version(r.server.Version())); err != nil {
					r.Fatal(err)
				}
				for key, object := range table.Replica().All() {
					text, err := json.Marshal(object)
					if err != nil {
						r.Fatal(err)
					}
					leaks := strings.Contains(string(text), strings.TrimRight(coded, "=")[:20])
					if leaks != show {
						r.Errorf("%s, show %v: %s", key, show, text)
					}
					want := Hidden
					if show {
						want = object.Object["data"].(map[string]any)["user"].(string)
					}
					if got, _, _ := unstructured.NestedString(object.Object, "data", "password"); got != want {
						r.Errorf("%s: password %q, want %q", key, got, want)
					}
					if object.GetLabels()["app"] != "web" {
						r.Errorf("%s has lost its labels: %s", key, text)
					}
				}
				if (table.Transform() == nil) != show {
					r.Error("the transform tells whether anything is hidden")
				}
				applied, _ := table.Store().Get("shop/applied")
				if applied.GetAnnotations()["team"] != "a" {
					r.Errorf("other annotations are gone: %v", applied.GetAnnotations())
				}
				other, ok := r.table(m, "secrets.example.org").Store().Get("shop/other")
				if got, _, _ := unstructured.NestedString(other.Object, "data", "password"); !ok || got != "open" {
					r.Errorf("a Secret of another group: %v", other)
				}
				end()
			}
		}
	})
}

// For every shape of a Secret, no part of its values is left, and the result says so.
func TestHideValuesOfAnyShape(t *testing.T) {
	const value = "c2VjcmV0"
	for _, object := range []map[string]any{
		{"data": value},
		{"data": []any{value}},
		{"data": map[string]any{"a": map[string]any{"b": value}, "c": []any{value}}},
		{"stringData": map[string]any{"a": value}, "data": nil},
		{"data": map[string]any{}, "metadata": map[string]any{"annotations": map[string]any{ondisk.LastApplied: value}}},
		{"metadata": map[string]any{"annotations": map[string]any{ondisk.LastApplied: value, "other": int64(1)}}},
		{"metadata": map[string]any{"annotations": value}},
	} {
		before, _ := json.Marshal(object)
		shown, hidden := HideValues(&unstructured.Unstructured{Object: object})
		if !hidden {
			t.Errorf("%s: it does not say that something is hidden", before)
		}
		if text, _ := json.Marshal(shown.Object); strings.Contains(string(text), value) {
			t.Errorf("left: %s", text)
		}
		if after, _ := json.Marshal(object); string(after) != string(before) {
			t.Errorf("what is stored has changed: %s", after)
		}
	}
	for _, object := range []map[string]any{{}, {"data": nil}, {"data": map[string]any{}}, {"metadata": value}, {"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}} {
		if _, hidden := HideValues(&unstructured.Unstructured{Object: object}); hidden {
			t.Errorf("%v: there is nothing to hide", object)
		}
	}
}

// Whatever applied a Secret, its copy of it is not kept; and a name can be added.
func TestCopiesOfAppliersAreHidden(t *testing.T) {
	const value = "hunter2hunter2"
	own := "example.com/our-own-copy"
	annotations := map[string]string{"team": "a", own: value}
	for _, name := range []string{
		"kubectl.kubernetes.io/last-applied-configuration", "banzaicloud.com/last-applied", "kapp.k14s.io/original", "kapp.k14s.io/original-diff-full",
		"objectset.rio.cattle.io/applied", "app.oam.dev/last-applied-configuration", "kopf.zalando.org/last-handled-configuration",
	} {
		annotations[name] = value
	}
	inBubble(t, func(r *rig) {
		if err := r.server.Put(secret("applied", "password", annotations)); err != nil {
			r.Fatal(err)
		}
		for _, further := range []bool{false, true} {
			opts := Options{}
			if further {
				opts.AppliedCopies = append(kube.AppliedCopies(), "example.com/*")
			}
			m, end := r.start(opts, "secrets")
			r.synced(m)
			kept, _ := r.table(m, "secrets").Store().Get("shop/applied")
			for name, text := range kept.GetAnnotations() {
				if shown := text == value; shown != (name == own && !further) {
					r.Errorf("%s is %q", name, text)
				}
			}
			if kept.GetAnnotations()["team"] != "a" {
				r.Errorf("other annotations are gone: %v", kept.GetAnnotations())
			}
			end()
		}
	})
}

// quoting is a source whose errors quote objects.
type quoting struct{ tarn.Source[Object] }

var errQuoting = errors.New("cannot read hunter2")

func (quoting) List(context.Context, tarn.ListQuery) (tarn.Page[Object], error) {
	return tarn.Page[Object]{Bad: []tarn.BadObject{{Key: "a/b", Err: errQuoting}}}, nil
}

func (quoting) Watch(context.Context, tarn.WatchQuery) (tarn.Stream[Object], error) {
	return quotingStream{}, nil
}

type quotingStream struct{ tarn.Stream[Object] }

func (quotingStream) Next(_ context.Context, buf []tarn.Event[Object]) (int, error) {
	buf[0] = tarn.Event[Object]{Type: tarn.EventModified, Bad: tarn.BadObject{Key: "a/b", Err: errQuoting}}
	return 1, nil
}

// The error of a Secret that could not be decoded is not shown, since it may quote the
// content; that of other objects is.
func TestErrorsDoNotQuoteSecrets(t *testing.T) {
	for _, hides := range []bool{false, true} {
		source := &counting{Source: quoting{}, hides: hides}
		page, _ := source.List(t.Context(), tarn.ListQuery{})
		stream, _ := source.Watch(t.Context(), tarn.WatchQuery{})
		buf := make([]tarn.Event[Object], 1)
		_, _ = stream.Next(t.Context(), buf)
		for _, bad := range []tarn.BadObject{page.Bad[0], buf[0].Bad} {
			if strings.Contains(bad.Err.Error(), "hunter2") == hides || !errors.Is(bad.Err, errQuoting) {
				t.Errorf("hides %v: %v", hides, bad.Err)
			}
			if strings.Contains(diagnoseBad(bad).detail, "hunter2") == hides {
				t.Errorf("hides %v: %s", hides, diagnoseBad(bad).detail)
			}
		}
	}
	if d := diagnose(errors.New(strings.Repeat("x", 1_000_000))); len(d.detail) > longestDetail+100 || !strings.Contains(d.detail, "1000000 bytes in all") {
		t.Errorf("the detail has %d bytes", len(d.detail))
	}
}
