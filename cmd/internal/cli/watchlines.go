package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// printChanges prints a line for each change until ctx ends.
func (a *app) printChanges(ctx context.Context, changes <-chan rowChange, opts *watchOptions) {
	for {
		select {
		case c := <-changes:
			if opts.watchOnly && c.change.Initial {
				continue
			}
			fmt.Fprintf(a.out, "%s %-8s %s %s\n", stamp(time.Now()), eventName(c.change.Type), term.Clean(c.of.key(c.change.Key)), c.summary(opts.format == "wide"))
		case <-ctx.Done():
			return
		}
	}
}

// key identifies an object among those of all resources.
func (t target) key(key tarn.Key) string { return t.resource.Name() + "/" + string(key) }

// eventName is the server's name of a change.
func eventName(t tarn.ChangeType) string {
	switch t {
	case tarn.Add:
		return "ADDED"
	case tarn.Delete:
		return "DELETED"
	}
	return "MODIFIED"
}

// summary shows the columns of a change: for a modified row the columns that differ, else
// all. It leaves out the age.
func (c rowChange) summary(wide bool) string {
	var said []string
	for i, column := range c.of.source.Columns() {
		if column.Priority > 0 && !wide || i >= len(c.change.Object.cells) || column.Format == "name" || column.Name == ageColumn {
			continue
		}
		cell, name := c.change.Object.cells[i], strings.ToUpper(column.Name)
		if c.change.Type != tarn.Update {
			said = append(said, name+"="+cell)
			continue
		}
		if old := c.change.Old; i < len(old.cells) && old.cells[i] != cell {
			said = append(said, name+"="+old.cells[i]+" → "+cell)
		}
	}
	if len(said) == 0 && c.change.Type == tarn.Update {
		return "(no column differs)"
	}
	return term.Clean(strings.Join(said, " "))
}

// ageColumn is the column that changes by itself.
const ageColumn = "Age"
