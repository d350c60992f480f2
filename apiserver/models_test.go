package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Every kind is described, and every reference leads somewhere: kubectl explain,
// and clients that make patches by schema, rely on that.
func TestModels(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	if err := server.Register(Kind{Group: "example.org", Version: "v1", Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	catalog := server.catalog.Load()
	for _, group := range catalog.groups {
		for _, version := range catalog.versions[group] {
			for _, e := range catalog.endpoints {
				if e.group != group || e.version != version {
					continue
				}
				answer := ask(server, http.MethodGet, "/openapi/v3/"+versionPath(e.groupVersion()), "", "")
				var document struct {
					Components struct{ Schemas map[string]map[string]any }
				}
				if err := json.Unmarshal(answer.Body.Bytes(), &document); err != nil {
					t.Fatalf("%s: %v", e.gvk(), err)
				}
				checkModels(t, e, document.Components.Schemas)
			}
		}
	}
}

func checkModels(t *testing.T, e *endpoint, schemas map[string]map[string]any) {
	t.Helper()
	described := 0
	for name, model := range schemas {
		for _, reference := range references(model) {
			if _, found := schemas[strings.TrimPrefix(reference, "#/components/schemas/")]; !found {
				t.Errorf("%s refers to %s, which is not there", name, reference)
			}
		}
		kinds, _ := model["x-kubernetes-group-version-kind"].([]any)
		if slices.ContainsFunc(kinds, func(kind any) bool { return kind.(map[string]any)["kind"] == e.kind }) {
			described++
			properties, _ := model["properties"].(map[string]any)
			if properties["metadata"] == nil || properties["apiVersion"] == nil {
				t.Errorf("%s has no metadata, or no apiVersion", name)
			}
		}
	}
	if described != 1 {
		t.Errorf("%s is described %d times", e.gvk(), described)
	}
}

func references(value any) (found []string) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if text, ok := inner.(string); ok && name == "$ref" {
				found = append(found, text)
			} else {
				found = append(found, references(inner)...)
			}
		}
	case []any:
		for _, inner := range value {
			found = append(found, references(inner)...)
		}
	}
	return found
}
