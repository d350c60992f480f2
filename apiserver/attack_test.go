package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// within checks how much memory something takes in all.
func within(t *testing.T, what string, mebibytes uint64, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > mebibytes {
		t.Errorf("%s took %d MiB, want at most %d", what, took, mebibytes)
	}
}

// things is a server with a custom resource of any content, and one object of it.
func things(t *testing.T, spec map[string]any) *Server {
	t.Helper()
	server := New(Options{})
	t.Cleanup(server.Close)
	if err := server.Register(Kind{Group: "example.com", Version: "v1", Kind: "Thing"}); err != nil {
		t.Fatal(err)
	}
	if err := server.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "default", "name": "a"}, "spec": spec,
	}}); err != nil {
		t.Fatal(err)
	}
	return server
}

const oneThing = "/apis/example.com/v1/namespaces/default/things/a"

// accept is ask with a wish for a media type.
func accept(server *Server, path, media string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept", media)
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	return recorder
}

// Each copy of a JSON patch may double an object; a body of 2 KB could make
// gigabytes of it.
func TestCopiesOfAPatchAreBounded(t *testing.T) {
	server := things(t, map[string]any{"a": "some text to begin with"})
	var operations []string
	for i := range 24 {
		operations = append(operations, fmt.Sprintf(`{"op":"copy","from":"/spec","path":"/spec/c%d"}`, i))
	}
	within(t, "the patch", 200, func() {
		answer := ask(server, "PATCH", oneThing, "application/json-patch+json", "["+strings.Join(operations, ",")+"]")
		if answer.Code != http.StatusUnprocessableEntity {
			t.Errorf("%d with %d bytes", answer.Code, answer.Body.Len())
		}
	})
	// A few are fine.
	if answer := ask(server, "PATCH", oneThing, "application/json-patch+json", "["+strings.Join(operations[:8], ",")+"]"); answer.Code != http.StatusOK {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// A stored object is no larger than what a server accepts, however it was written.
func TestPatchedObjectsAreBounded(t *testing.T) {
	server := things(t, map[string]any{"text": strings.Repeat("x", maxBody-100<<10)})
	patch := fmt.Sprintf(`{"spec":{"part":%q}}`, strings.Repeat("x", 200<<10))
	if answer := ask(server, "PATCH", oneThing, "application/merge-patch+json", patch); answer.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d: %.200s", answer.Code, answer.Body)
	}
}

// No verb reads more of a body than a real server does.
func TestBodiesAreBounded(t *testing.T) {
	server := things(t, map[string]any{})
	huge := `{"x":"` + strings.Repeat("x", maxBody) + `"}`
	for _, test := range []struct{ method, path, contentType string }{
		{"POST", "/apis/example.com/v1/namespaces/default/things", "application/json"},
		{"POST", "/api/v1/namespaces/default/configmaps", "application/vnd.kubernetes.protobuf"},
		{"PUT", oneThing, "application/yaml"},
		{"PATCH", oneThing, "application/merge-patch+json"},
		{"PATCH", oneThing, "application/json-patch+json"},
		{"DELETE", oneThing, "application/json"},
		{"DELETE", "/apis/example.com/v1/namespaces/default/things", "application/json"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json"},
		{"POST", "/api/v1/namespaces/default/pods/a/binding", "application/json"},
	} {
		if answer := ask(server, test.method, test.path, test.contentType, huge); answer.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s %s: %d %.100s", test.method, test.path, answer.Code, answer.Body)
		}
	}
	if answer := ask(server, "GET", oneThing, "", huge); answer.Code != http.StatusOK {
		t.Errorf("GET with a body: %d", answer.Code)
	}
}

// deep is a value below levels.
func deep(levels int, value any) map[string]any {
	for range levels {
		value = map[string]any{"a": value}
	}
	return value.(map[string]any)
}

func manyKeys(keys int) map[string]any {
	m := map[string]any{}
	for i := range keys {
		m[fmt.Sprintf("k%05d", i)] = int64(i)
	}
	return m
}

// A deeply nested object is sent in full, in little more than its own size, in
// every requested form.
func TestDeepObjects(t *testing.T) {
	server := things(t, deep(9000, manyKeys(5000)))
	for _, test := range []struct{ path, media string }{
		{oneThing, "application/json"}, {oneThing + "?pretty=true", "application/json"}, {oneThing, "application/yaml"},
		{strings.TrimSuffix(oneThing, "/a"), "application/yaml"}, {strings.TrimSuffix(oneThing, "/a") + "?pretty=1", "application/json"},
		{oneThing, "application/json;as=Table;v=v1;g=meta.k8s.io"},
	} {
		within(t, test.path+" as "+test.media, 50, func() {
			answer := accept(server, test.path, test.media)
			if answer.Code != http.StatusOK || answer.Body.Len() > 1<<20 {
				t.Errorf("%s as %s: %d, %d bytes", test.path, test.media, answer.Code, answer.Body.Len())
			}
		})
	}
	// Others are as pretty as ever.
	if answer := accept(server, "/api/v1/namespaces/default?pretty=true", "application/json"); !strings.Contains(answer.Body.String(), "\n  \"kind\"") {
		t.Errorf("not pretty: %s", answer.Body)
	}
	if answer := accept(server, "/api/v1/namespaces/default", "application/yaml"); !strings.Contains(answer.Body.String(), "\nkind: Namespace") {
		t.Errorf("no YAML: %s", answer.Body)
	}
}

// Bodies that are nested deeper than any server takes are turned down, in every
// format, by an answer and not by the end of the process.
func TestNestingIsBounded(t *testing.T) {
	server := things(t, map[string]any{})
	const levels = 480_000
	asJSON := func(kind, rest string) string {
		return `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"` + kind + `":` + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) + rest + "}"
	}
	nested := nestedSchema(levels)
	for _, test := range []struct{ method, path, contentType, body string }{
		{"POST", "/apis/example.com/v1/namespaces/default/things", "application/json", asJSON("spec", "")},
		{"POST", "/apis/example.com/v1/namespaces/default/things", "application/yaml", asJSON("spec", "")},
		{"PATCH", oneThing, "application/merge-patch+json", asJSON("spec", "")},
		{"PATCH", oneThing, "application/json-patch+json", `[{"op":"add","path":"/spec","value":` + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) + `}]`},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/vnd.kubernetes.protobuf", nested},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/vnd.kubernetes.protobuf", nested},
		{"DELETE", oneThing, "application/vnd.kubernetes.protobuf", nested},
		{"DELETE", oneThing, "application/json", asJSON("preconditions", "")},
	} {
		if answer := ask(server, test.method, test.path, test.contentType, test.body); answer.Code < 400 || answer.Code >= 500 {
			t.Errorf("%s %s as %s: %d %.200s", test.method, test.path, test.contentType, answer.Code, answer.Body)
		}
	}
}

// nestedSchema is a definition in protobuf whose schema is nested: each
// JSONSchemaProps has another one as "not".
func nestedSchema(levels int) string {
	// A message follows its length, so they are written from the inside out,
	// backwards.
	var backwards []byte
	enclose := func(field int) {
		head := appendHead(nil, field, len(backwards))
		slices.Reverse(head)
		backwards = append(backwards, head...)
	}
	for range levels {
		enclose(28)
	}
	for _, field := range []int{1, 4, 7, 2} { // openAPIV3Schema, schema, versions, spec
		enclose(field)
	}
	slices.Reverse(backwards)
	kind := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	return string(append(envelope(kind, len(backwards), nil), backwards...))
}

// Thousands of unknown fields are not reported one by one, each with a path as long
// as its depth.
func TestComplaintsAreBounded(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	definition := Kind{Group: "example.com", Version: "v1", Kind: "Thing"}.definition()
	raw, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	// A schema that knows 200 levels, and nothing of what is below.
	schema := `{"type":"object"}`
	for range 200 {
		schema = `{"type":"object","properties":{"` + strings.Repeat("a", 50) + `":` + schema + `}}`
	}
	schema = `{"type":"object","properties":{"spec":` + schema + `}}`
	raw = bytes.Replace(raw, []byte(`"openAPIV3Schema":{`), []byte(`"openAPIV3Schema":`+schema+`,"ignored":{`), 1)
	if answer := ask(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", string(raw)); answer.Code != http.StatusCreated {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	spec := manyKeys(5000)
	for range 200 {
		spec = map[string]any{strings.Repeat("a", 50): spec}
	}
	thing, err := json.Marshal(map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	for _, validation := range []string{"", "?fieldValidation=Warn", "?fieldValidation=Strict", "?fieldValidation=Ignore"} {
		within(t, "the post"+validation, 40, func() {
			answer := ask(server, "POST", "/apis/example.com/v1/namespaces/default/things"+validation+"", "application/json", string(thing))
			if n := len(answer.Header().Values("Warning")); n > maxComplaints+1 || answer.Body.Len() > 4<<20 {
				t.Errorf("%s: %d, %d warnings, %d bytes", validation, answer.Code, n, answer.Body.Len())
			}
			_ = ask(server, "DELETE", oneThing, "application/json", "")
		})
	}
	// The same of a type that is built in, and of values that a schema refuses.
	pod, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "spec": manyKeys(5000)})
	if err != nil {
		t.Fatal(err)
	}
	if answer := ask(server, "POST", "/api/v1/namespaces/default/pods", "application/json", string(pod)); len(answer.Header().Values("Warning")) > maxComplaints+1 {
		t.Errorf("%d warnings", len(answer.Header().Values("Warning")))
	}
}

// The history of large objects is as bounded as that of many.
func TestHistoryIsBoundedByBytes(t *testing.T) {
	server := New(Options{HistoryBytes: 100 << 10})
	t.Cleanup(server.Close)
	object := func(i int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "a"},
			"data": map[string]any{"text": fmt.Sprint(i, strings.Repeat("x", 10<<10))},
		}}
	}
	var first string
	for i := range 50 {
		if err := server.Put(object(i)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = server.Version()
		}
	}
	for c := range server.state.collections {
		if n := c.history.bytes; n > 100<<10 || n < 0 {
			t.Errorf("the history of %s holds %d bytes", c.kind, n)
		}
	}
	answer := ask(server, "GET", "/api/v1/configmaps?watch=true&resourceVersion="+first, "", "")
	if !strings.Contains(answer.Body.String(), "too old resource version") {
		t.Errorf("the first version is remembered: %.200s", answer.Body)
	}
	last := server.Version()
	if answer := ask(server, "GET", "/api/v1/configmaps?watch=true&resourceVersion="+last, "", ""); answer.Body.Len() != 0 {
		t.Errorf("the last version is not: %.200s", answer.Body)
	}
}
