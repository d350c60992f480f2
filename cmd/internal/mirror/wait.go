package mirror

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// WaitSynced waits until every table has its whole resource. If ctx ends first, the error is
// a [NotSynced] that names the tables that are not synced, and says why.
func (m *Mirror) WaitSynced(ctx context.Context) error {
	failed := make([]error, len(m.tables))
	var waiting sync.WaitGroup
	for i, t := range m.tables {
		waiting.Go(func() { failed[i] = t.replica.WaitSynced(ctx) })
	}
	waiting.Wait()
	e := &NotSynced{of: len(m.tables)}
	for i, t := range m.tables {
		if failed[i] != nil {
			e.Tables = append(e.Tables, t.resource.Name())
			e.Errs = append(e.Errs, failed[i])
			e.causes = append(e.causes, cause(t))
		}
	}
	if len(e.Tables) == 0 {
		return nil
	}
	return e
}

// cause is why a table is not synced. Tables with the same cause have the same text.
func cause(t *Table) string {
	for _, d := range diagnosesOf(t.replica.Health(), t.inputs.named()) {
		return d.what
	}
	return "has not answered in full yet"
}

// NotSynced says which tables are not synced, and why.
type NotSynced struct {
	Tables []string
	// Errs has an error for each of the tables.
	Errs []error

	of     int
	causes []string
}

// Error names all tables. For tables with the same cause it has one error in full: one cause
// often affects all tables.
func (e *NotSynced) Error() string {
	var parts []string
	told := map[string]bool{}
	for i, cause := range e.causes {
		if told[cause] {
			continue
		}
		told[cause] = true
		var also []string
		for j := i + 1; j < len(e.causes); j++ {
			if e.causes[j] == cause {
				also = append(also, e.Tables[j])
			}
		}
		part := e.Errs[i].Error()
		if len(also) > 0 {
			part += fmt.Sprintf(" (and likewise %s)", strings.Join(also, ", "))
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%d of %d tables not synced: %s", len(e.Tables), e.of, strings.Join(parts, "; "))
}

func (e *NotSynced) Unwrap() []error { return e.Errs }
