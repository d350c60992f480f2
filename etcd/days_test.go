package etcd_test

import (
	"testing"
	"testing/synctest"

	"github.com/tarnproject/tarn/internal/sim"
	"github.com/tarnproject/tarn/internal/testsize"
)

var days = testsize.Flag("days", 300, 40, "how many days to simulate, each without sinks and with them")

// TestDays simulates days as package sim does, with an etcd source between the replica and
// the server: revisions that are compacted, a cluster that is restored, connections that
// break, pages at one revision.
func TestDays(t *testing.T) {
	for seed := range uint64(days()) {
		for _, sinks := range []bool{false, true} {
			cfg := sim.Config{Seed: seed + 1, Sinks: sinks, Source: modelSource}
			if report := simulate(t, cfg); report.Failed() {
				least := sim.Shrink(cfg, func(c sim.Config) *sim.Report { return simulate(t, c) })
				t.Fatalf("%s\nthe least that fails: %s\n%s", report, least, least.Table())
			}
		}
	}
}

// A simulation that cannot fail proves nothing.
func TestDaysFindABug(t *testing.T) {
	for seed := range uint64(100) {
		if simulate(t, sim.Config{Seed: seed + 1, Source: modelSource, Plant: sim.DroppedOnReconnect}).Failed() {
			return
		}
	}
	t.Error("a lost event was not found in 100 days")
}

func simulate(t *testing.T, cfg sim.Config) (report *sim.Report) {
	synctest.Test(t, func(*testing.T) { report = sim.Run(cfg) })
	return report
}
