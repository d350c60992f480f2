package main

import (
	"context"
	"testing"
	"testing/synctest"
)

// Every scenario, small: the contenders must come to the end that the scenario
// waits for, and the figures that do not depend on the machine must be right.
func TestScenarios(t *testing.T) {
	tr := traffic{keys: 10, updates: 300}
	for _, c := range contenders {
		for _, test := range []struct {
			name  string
			body  func(context.Context, *meter) error
			calls [2]float64
		}{
			{"fanout", func(ctx context.Context, m *meter) error { return runFanout(ctx, m, c.newInformer, tr, 3) }, [2]float64{30, 900}},
			{"stalled", func(ctx context.Context, m *meter) error { return runStalled(ctx, m, c.newInformer, tr) }, [2]float64{10, 300}},
			{"relist", func(ctx context.Context, m *meter) error {
				return runRelist(ctx, m, c.newInformer, newSource(largePod, 1_200, true, streamBuffer))
			}, [2]float64{}},
			{"relist-paged", func(ctx context.Context, m *meter) error {
				return runRelist(ctx, m, c.newInformer, newSource(largePod, 1_200, false, streamBuffer))
			}, [2]float64{}},
		} {
			t.Run(test.name+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMeter()
					if err := test.body(t.Context(), m); err != nil {
						t.Fatal(err)
					}
					got := map[string]float64{}
					for _, x := range m.result {
						got[x.Name] = x.Value
					}
					if calls := got["handler calls"]; calls < test.calls[0] || calls > test.calls[1] {
						t.Errorf("%v handler calls, want %v to %v", calls, test.calls[0], test.calls[1])
					}
					if _, ok := got["peak heap over start"]; !ok {
						t.Errorf("measures %v lack the peak heap", got)
					}
				})
			})
		}
	}
}

// The final state is identified by version alone: exactly the last update of each
// key must count.
func TestTrafficEndsWithEveryKey(t *testing.T) {
	tr := traffic{keys: 3, updates: 8}
	pods := tr.pods()
	finals := map[string]int{}
	for i := range tr.updates {
		f := newFollower(tr)
		event := tr.event(pods, i)
		f.OnUpdate(nil, event.Object)
		if f.finals.Load() == 1 {
			finals[pods[i%tr.keys].Name]++
		}
	}
	if len(finals) != 3 || finals[pods[0].Name]+finals[pods[1].Name]+finals[pods[2].Name] != 3 {
		t.Errorf("final states seen by key: %v, want one each for three keys", finals)
	}
}
