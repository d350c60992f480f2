package relay

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// widgetDefinition has a column and a field to select by.
func widgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
				SelectableFields:         []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Color", Type: "string", JSONPath: ".spec.color"}},
			}},
		},
	}
}

func widget(name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "default", "name": name, "labels": map[string]any{"l": color}},
		"spec":     map[string]any{"color": color, "size": int64(3)},
	}}
}

// customRig relays widgets. definition may be nil.
func customRig(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) *rig {
	r := newRigWith(t, Options{Resources: []schema.GroupVersionResource{pods, widgets}}, func(r *rig) {
		if definition != nil {
			r.put(definition)
		}
	})
	return r
}

// settleWidgets waits until the copy has everything that was written to widgets.
func (r *rig) settleWidgets() {
	r.t.Helper()
	r.put(widget("settle", fmt.Sprint(time.Now().UnixNano())))
	version := versionOf(tarnVersion(r.origin.Version()))
	for began := time.Now(); time.Since(began) < 10*time.Second; {
		if c := r.copy(widgets, ""); c != nil {
			if _, current := c.state.await(r.t.Context(), version, 100*time.Millisecond); current >= version {
				return
			}
		}
	}
	r.t.Fatal("the copy of widgets is behind")
}

// Answers about a custom resource are those of the origin, byte by byte, and the origin is
// not asked for them.
func TestCustomResource(t *testing.T) {
	r := customRig(t, widgetDefinition())
	first := r.origin.Version()
	for i := range 6 {
		r.put(widget(fmt.Sprint("w", i), []string{"red", "blue"}[i%2]))
	}
	r.put(widget("w0", "blue"))
	if err := r.origin.Delete(widget("w3", "")); err != nil {
		t.Fatal(err)
	}
	r.settleWidgets()
	const all = "/apis/example.com/v1/widgets?resourceVersion=0"
	for _, path := range []string{
		all, all + "&labelSelector=l%3Dred", all + "&fieldSelector=spec.color%3Dblue", all + "&fieldSelector=metadata.name%3Dw1",
		all + "&fieldSelector=spec.size%3D3", "/apis/example.com/v1/namespaces/default/widgets/w1?resourceVersion=0",
		"/apis/example.com/v1/widgets?limit=2&resourceVersion=" + r.origin.Version(),
		"/apis/example.com/v1/widgets?watch=1&timeoutSeconds=2&fieldSelector=spec.color%3Dred&resourceVersion=" + first,
	} {
		for _, accept := range []string{
			"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf",
		} {
			if strings.Contains(path, "watch") && accept != "application/json" {
				continue // each takes a second
			}
			wantCode, want := directly(t, r, path, accept)
			r.requests()
			code, body := r.read(path, "Accept", accept)
			if code != wantCode || body != want {
				t.Errorf("%s as %s:\n%d %.300q, want\n%d %.300q", path, accept, code, body, wantCode, want)
			}
			if asked := r.requests(); len(asked) > 0 {
				t.Errorf("%s as %s: the origin was asked %q", path, accept, asked)
			}
		}
	}
}

// A definition that changes, or goes, ends the watches, after what came before.
func TestDefinitionChanges(t *testing.T) {
	r := customRig(t, nil)
	if code, body := r.read("/apis/example.com/v1/widgets?resourceVersion=0"); code != http.StatusNotFound {
		t.Errorf("without a definition: %d %s", code, body)
	}
	if err := r.relay.Ready(); err != nil {
		t.Error(err)
	}
	definition := widgetDefinition()
	r.put(definition, widget("a", "red"))
	r.settleWidgets()
	watchAll := func() (end func() string) {
		done := make(chan string)
		version := r.origin.Version()
		go func() {
			_, body := r.read("/apis/example.com/v1/widgets?watch=1&resourceVersion=" + version)
			done <- body
		}()
		for c := r.copy(widgets, ""); c.state.stats().watches == 0; {
			time.Sleep(time.Millisecond)
		}
		return func() string { return <-done }
	}
	end := watchAll()
	definition.Spec.Versions[0].AdditionalPrinterColumns[0].Name = "Colour"
	r.put(definition)
	if body := end(); body != "" {
		t.Errorf("%s", body)
	}
	r.settleWidgets()
	_, body := r.read("/apis/example.com/v1/widgets?resourceVersion=0", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if !strings.Contains(body, `"name":"Colour"`) {
		t.Error(body)
	}
	end = watchAll()
	if err := r.origin.Delete(definition); err != nil {
		t.Fatal(err)
	}
	if body := end(); strings.Count(body, `"type":"DELETED"`) != 2 || strings.Contains(body, "ERROR") {
		t.Errorf("%s", body)
	}
	if code, body := r.read("/apis/example.com/v1/widgets?resourceVersion=0"); code != http.StatusNotFound {
		t.Errorf("after the definition has gone: %d %s", code, body)
	}
}
