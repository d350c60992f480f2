package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// secretFilter hides the values of Secrets. A mirror does not even keep them unless an option
// says so; this is the second check, for mirrors that were made for another purpose.
type secretFilter struct{ open bool }

func (c secretFilter) covers(r mirror.Resource) bool { return !c.open && r.Secret() }

// content returns the visible part of an object. The result is read-only.
func (c secretFilter) content(table *mirror.Table, object mirror.Object) map[string]any {
	if !c.covers(table.Resource()) {
		return object.Object
	}
	return table.Shown(object).Object
}

// permits returns an error if a query may not filter and sort a table by these fields.
// Filtering or sorting by a hidden value would reveal it bit by bit.
func (c secretFilter) permits(resource mirror.Resource, q search) error {
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
func (c secretFilter) permitsPath(resource mirror.Resource, path string) error {
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
