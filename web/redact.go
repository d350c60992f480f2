package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/mirror"
)

// lastApplied is where kubectl apply leaves a copy of the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// curtain keeps the values of Secrets from being shown. A mirror does not even
// keep them unless it is told to; this is the second door, for mirrors that were
// made for something else.
type curtain struct{ open bool }

func (c curtain) covers(resource schema.GroupVersionResource) bool {
	return !c.open && resource.Group == "" && resource.Resource == "secrets"
}

// content is what may be seen of an object. What it returns is read-only.
func (c curtain) content(table *mirror.Table, object mirror.Object) map[string]any {
	if !c.covers(table.Resource().GVR) {
		return object.Object
	}
	shown := maps.Clone(object.Object)
	for _, field := range []string{"data", "stringData"} {
		if values, ok := shown[field]; ok {
			shown[field] = hidden(values)
		}
	}
	metadata, _ := shown["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, ok := annotations[lastApplied]; ok {
		annotations = maps.Clone(annotations)
		annotations[lastApplied] = mirror.Hidden
		metadata = maps.Clone(metadata)
		metadata["annotations"] = annotations
		shown["metadata"] = metadata
	}
	return shown
}

func hidden(values any) any {
	m, ok := values.(map[string]any)
	if !ok {
		return mirror.Hidden
	}
	covered := make(map[string]any, len(m))
	for name := range m {
		covered[name] = mirror.Hidden
	}
	return covered
}

// permits says whether a table may be asked for what a query filters by. To
// filter or sort by what is hidden would tell it bit by bit.
func (c curtain) permits(resource schema.GroupVersionResource, q query) error {
	if !c.covers(resource) {
		return nil
	}
	for _, selector := range q.fields {
		if strings.ContainsAny(selector, `[]'"`) {
			return fmt.Errorf("%s: Secrets can only be asked for plain fields, without brackets and quotes", selector)
		}
	}
	for _, path := range q.paths {
		if err := c.permitsPath(resource, path); err != nil {
			return err
		}
	}
	return nil
}

// permitsPath is permits for one field.
func (c curtain) permitsPath(resource schema.GroupVersionResource, path string) error {
	if !c.covers(resource) {
		return nil
	}
	for _, field := range []string{"metadata.annotations", "metadata.managedFields"} {
		if strings.HasPrefix(path, field) {
			return hiddenField(path)
		}
	}
	if slices.Contains([]string{"type", "immutable", "kind", "apiVersion"}, path) || strings.HasPrefix(path, "metadata.") {
		return nil
	}
	return hiddenField(path)
}

func hiddenField(path string) error {
	return fmt.Errorf("%s of Secrets is hidden, and cannot be asked for: start with the option that shows Secrets", path)
}
