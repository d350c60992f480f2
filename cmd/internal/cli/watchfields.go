package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// watchFields follows objects and prints the changed fields until ctx ends.
func (a *app) watchFields(parent context.Context, at cluster, wanted []target, opts *watchOptions, namespace string) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	denials := newDeniedResources(len(wanted), cancel)
	var m *mirror.Mirror
	started := make(chan struct{})
	options := mirror.Options{
		Namespaces: opts.namespaces(namespace), LabelSelector: opts.labels, FieldSelector: opts.fields,
		ShowSecrets: opts.showSecrets, AppliedCopies: a.appliedCopies(), Logger: a.logger,
		OnError: func(name string, err error) {
			<-started
			a.logger.Info("watch failed", "resource", name, "error", err)
			if table, ok := m.Table(name); ok {
				denials.add(name, table.Replica().Synced(), err)
			}
		},
	}
	if len(wanted) == 1 && len(wanted[0].names) == 1 {
		options.FieldSelector = "metadata.name=" + wanted[0].names[0]
	}
	var err error
	m, err = at.start(ctx, resourcesOf(wanted), options)
	close(started)
	if err != nil {
		return err
	}
	printer := a.fieldPrinter()
	var running sync.WaitGroup
	for i, table := range m.Tables() {
		running.Go(func() { printer.follow(ctx, wanted[i], table) })
	}
	running.Go(func() {
		for i, table := range m.Tables() {
			if err := missing(ctx, table.Replica(), wanted[i], namespace); err != nil {
				cancel(err)
			} else if table.Replica().WaitSynced(ctx) == nil {
				fmt.Fprintf(a.errOut, "Following %s of %s.\n", plural(table.Store().Len(), "object"), table.Resource().Name())
			}
		}
	})
	running.Wait()
	<-m.Done()
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// fieldPrinter prints changes field by field. Several tables share one.
type fieldPrinter struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
}

func (a *app) fieldPrinter() *fieldPrinter {
	printer := &fieldPrinter{out: a.out}
	if terminal, ok := a.terminal(); ok {
		printer.colour = terminal.Colour()
	}
	return printer
}

func (p *fieldPrinter) follow(ctx context.Context, of target, table *mirror.Table) {
	for c := range table.Replica().Changes(ctx) {
		if c.Initial || len(of.names) > 0 && !slices.Contains(of.names, c.Object.GetName()) {
			continue
		}
		p.print(describeChange(of, c, time.Now())...)
	}
}

func (p *fieldPrinter) print(lines ...term.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range lines {
		fmt.Fprintln(p.out, line.Render(p.colour))
	}
}

// describeChange returns a heading, and a line for each field that differs.
func describeChange(of target, c tarn.Change[mirror.Object], now time.Time) []term.Line {
	lines := []term.Line{changeHeading(of, c, stamp(now))}
	if c.Type == tarn.Update {
		lines = append(lines, changedFields(of, c)...)
	}
	return lines
}

// changeHeading says which object changed, how and when.
func changeHeading(of target, c tarn.Change[mirror.Object], when string) term.Line {
	style := map[tarn.ChangeType]term.Style{tarn.Add: term.Green, tarn.Update: term.Yellow, tarn.Delete: term.Red}[c.Type]
	return term.Line{
		{Text: when + " "},
		{Text: fmt.Sprintf("%-8s", eventName(c.Type)), Style: style},
		{Text: " " + of.key(c.Key), Style: term.Bold},
	}
}

// changedFields returns a line for each field that an update changed.
func changedFields(of target, c tarn.Change[mirror.Object]) []term.Line {
	lines := differences(c.Old.Object, c.Object.Object)
	if len(lines) == 0 {
		why := "no field that is kept differs"
		if of.resource.Secret() {
			why = "values that are hidden may differ; --show-secrets shows them"
		}
		lines = append(lines, term.Line{{Text: "  (" + why + ")", Style: term.Dim}})
	}
	return lines
}
