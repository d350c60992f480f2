package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/bench/report"
)

func stalled() scenario {
	t := traffic{keys: 1_000, updates: 300_000}
	return scenario{
		name: "stalled",
		doc: fmt.Sprintf("One handler hangs on its first update of %s pods while %s updates come, each an object of its own; the heap is measured when the store shows the last of them. Then the handler continues until it has seen every pod's final state.",
			report.Thousands(float64(t.keys)), report.Thousands(float64(t.updates))),
		run: forAll(func(ctx context.Context, m *meter, create newInformer) error {
			return runStalled(ctx, m, create, t)
		}),
	}
}

func runStalled(ctx context.Context, m *meter, create newInformer, t traffic) error {
	pods := t.pods()
	f, g := newFollower(t), newGate()
	count := f.UpdateFunc
	f.UpdateFunc = func(old, object any) { g.pass(); count(old, object) }

	src := newSource(smallPod, t.keys, true, t.keys)
	informer, stop, err := runInformer(ctx, create, src, f)
	if err != nil {
		return err
	}
	defer stop()
	defer g.release()
	st, err := src.nextWatch(ctx)
	if err != nil {
		return err
	}

	m.start()
	if err := st.sendAll(t.updates, func(i int) watch.Event { return t.event(pods, i) }); err != nil {
		return err
	}
	if err := until(ctx, "the store shows the last update", func() bool { return t.shownBy(informer.GetStore()) }); err != nil {
		return err
	}
	if _, err := receive(ctx, g.entered, "the handler to be called"); err != nil {
		return err
	}
	wall := m.stop().Seconds()
	m.record("events", float64(t.updates)/wall, report.PerSecond)

	g.release()
	if _, err := receive(ctx, f.done, "the handler to see every final state"); err != nil {
		return err
	}
	m.record("handler calls", float64(f.calls.Load()), report.Number)
	return nil
}
