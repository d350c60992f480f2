package sim

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tarnproject/tarn/faults"
)

// A test of one's own runs a day in a bubble and looks at the report.
func ExampleRun() {
	test := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			report := Run(Config{Seed: 7})
			if report.Failed() {
				t.Errorf("%s\n%s", report, report.Table())
			}
		})
	}
	_ = test // run by go test
}

// A failing day is reduced to the faults without which it does not fail; here it
// is one out of eight.
func ExampleShrink() {
	run := func(cfg Config) *Report {
		report := &Report{Config: cfg}
		for n := range 8 {
			place := faults.Place{Stream: "source", Request: n, Kind: faults.Stall, Nth: 1}
			if cfg.Suppress != nil && cfg.Suppress(place) {
				continue
			}
			report.Faults = append(report.Faults, faults.Fault{Place: place})
			if n == 5 {
				report.Violations = []string{"convergence: the stall of request 5 was not noticed"}
			}
		}
		return report
	}
	least := Shrink(Config{Seed: 7, Writes: 10}, run)
	fmt.Println(len(least.Faults), least.Faults[0].Request)

	// Output: 1 5
}
