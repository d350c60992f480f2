package main

import (
	"context"
	"fmt"
	"runtime"

	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/bench/report"
)

func fanout(handlers int) scenario {
	t := traffic{keys: 1_000, updates: 200_000}
	return scenario{
		name: fmt.Sprintf("fanout-%d", handlers),
		doc: fmt.Sprintf("%s updates of %s pods, made beforehand, go through an informer to %d counting handlers, until each has seen every pod's final state.",
			report.Thousands(float64(t.updates)), report.Thousands(float64(t.keys)), handlers),
		run: forAll(func(ctx context.Context, m *meter, create newInformer) error {
			return runFanout(ctx, m, create, t, handlers)
		}),
	}
}

func runFanout(ctx context.Context, m *meter, create newInformer, t traffic, handlers int) error {
	pods := t.pods()
	events := make([]watch.Event, t.updates)
	for i := range events {
		events[i] = t.event(pods, i)
	}

	followers := make([]*follower, handlers)
	asHandlers := make([]upstream.ResourceEventHandler, handlers)
	for i := range followers {
		followers[i] = newFollower(t)
		asHandlers[i] = followers[i]
	}
	// The watch has room for all events, so that sending them takes nothing from
	// the informer's time but a few milliseconds at the start.
	src := newSource(smallPod, t.keys, true, t.updates)
	_, stop, err := runInformer(ctx, create, src, asHandlers...)
	if err != nil {
		return err
	}
	defer stop()
	st, err := src.nextWatch(ctx)
	if err != nil {
		return err
	}

	m.start()
	if err := st.sendAll(t.updates, func(i int) watch.Event { return events[i] }); err != nil {
		return err
	}
	for _, f := range followers {
		if _, err := receive(ctx, f.done, "a handler to see every final state"); err != nil {
			return err
		}
	}
	wall := m.stop().Seconds()
	runtime.KeepAlive(events)

	calls := int64(0)
	for _, f := range followers {
		calls += f.calls.Load()
	}
	m.record("events", float64(t.updates)/wall, report.PerSecond)
	m.record("handler calls", float64(calls), report.Number)
	// A contender that skips outdated states processes events sooner than it
	// delivers them; only both rates together say how fast it is.
	m.record("handler calls per second", float64(calls)/wall, report.PerSecond)
	return nil
}
