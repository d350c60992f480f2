package sim

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarnproject/tarn/internal/testsize"
)

var (
	seeds = testsize.Flag("seeds", 400, 60, "how many days to simulate, each for a replica and for an informer")
	// A day with sinks takes about three times as long as one without.
	sinkSeeds = testsize.Flag("sinkseeds", 120, 15, "how many days with sinks to simulate")
	first     = flag.Uint64("first", 1, "the seed of the first day")
)

// simulate runs a day in a bubble.
func simulate(t *testing.T, cfg Config) *Report {
	var report *Report
	synctest.Test(t, func(t *testing.T) { report = Run(cfg) })
	return report
}

// TestDays simulates many days, on all cores. Of a failing one, the seed, the
// least that still fails and its history are printed.
func TestDays(t *testing.T) {
	var days, faults atomic.Int64
	began := time.Now()
	shards := uint64(runtime.GOMAXPROCS(0))
	t.Run("all", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for i := shard; i < uint64(seeds()); i += shards {
					for _, informer := range []bool{false, true} {
						faults.Add(int64(liveThrough(t, Config{Seed: *first + i, Informer: informer})))
						if n := days.Add(1); n%10_000 == 0 {
							fmt.Printf("%d days, %d faults, %s\n", n, faults.Load(), time.Since(began).Round(time.Second))
						}
					}
				}
			})
		}
	})
	t.Logf("%d days with %d faults", days.Load(), faults.Load())
}

// TestSinkDays simulates days with sinks and a process that is killed.
func TestSinkDays(t *testing.T) {
	var days atomic.Int64
	began := time.Now()
	shards := uint64(runtime.GOMAXPROCS(0))
	t.Run("all", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for i := shard; i < uint64(sinkSeeds()); i += shards {
					liveThrough(t, Config{Seed: *first + i, Sinks: true})
					if n := days.Add(1); n%10_000 == 0 {
						fmt.Printf("%d days with sinks, %s\n", n, time.Since(began).Round(time.Second))
					}
				}
			})
		}
	})
}

// liveThrough simulates a day, fails if it broke a promise, and returns the number
// of faults.
func liveThrough(t *testing.T, cfg Config) int {
	report := simulate(t, cfg)
	if report.Failed() {
		least := Shrink(cfg, func(c Config) *Report { return simulate(t, c) })
		t.Fatalf("%s\nthe least that fails: %s\n%s", report, least, least.Table())
	}
	return len(report.Faults)
}

// TestRegressions are days that found a bug; docs/bugs.md says which.
func TestRegressions(t *testing.T) {
	for _, cfg := range []Config{
		{Seed: 2762, Informer: true},
		{Seed: 8127, Informer: true},
		{Seed: 6822, Informer: true},
		{Seed: 19184, Informer: true},
		{Seed: 23163},
		{Seed: 71528},
		{Seed: 21, Sinks: true},
		{Seed: 142, Sinks: true},
		{Seed: 2032, Sinks: true},
	} {
		liveThrough(t, cfg)
	}
}

// TestSameSeedSameDay: what a seed found can be looked at again.
func TestSameSeedSameDay(t *testing.T) {
	for seed := range uint64(testsize.Of(30, 6)) {
		a, b := simulate(t, Config{Seed: seed}), simulate(t, Config{Seed: seed})
		if a.Faults.String() != b.Faults.String() {
			t.Fatalf("seed %d gave two days:\n%s\n%s", seed, a.Faults, b.Faults)
		}
	}
}

// TestPlantedBugsAreFound puts bugs into the pipeline: each must be found soon,
// as the promise that it breaks. Simulation that cannot fail proves nothing.
func TestPlantedBugsAreFound(t *testing.T) {
	breaks := map[Bug]string{
		LostDelete:         "convergence",
		VersionAhead:       "atomic version",
		ReorderedKey:       "order",
		DroppedOnReconnect: "atomic version",
		UnboundedQueue:     "bounded memory",
		MissedRewind:       "convergence",
		SyntheticDelete:    "one bad object is one bad object",
		ForgottenDeletes:   "atomic position",
		PositionFirst:      "atomic position",
		SilentFold:         "exactly once",
		SilentRelist:       "exactly once",
		SilentBad:          "exactly once",
		GivenTwice:         "exactly once",
		LostRetry:          "atomic position",
	}
	for bug, promise := range breaks {
		t.Run(bug.String(), func(t *testing.T) {
			for seed := range uint64(400) {
				report := simulate(t, Config{Seed: seed, Plant: bug, Sinks: bug >= ForgottenDeletes})
				for _, v := range report.Violations {
					if strings.HasPrefix(v, promise) {
						t.Logf("found on day %d: %s", seed, v)
						return
					}
				}
			}
			t.Errorf("not found as a breach of %q", promise)
		})
	}
}

// TestShrinkKeepsWhatMatters: of the faults of a failing day only those stay
// without which it does not fail.
func TestShrinkKeepsWhatMatters(t *testing.T) {
	cfg := Config{Seed: 1, Plant: DroppedOnReconnect}
	for ; !simulate(t, cfg).Failed(); cfg.Seed++ {
	}
	whole := simulate(t, cfg)
	least := Shrink(cfg, func(c Config) *Report { return simulate(t, c) })
	if !least.Failed() || len(least.Faults) > len(whole.Faults) {
		t.Errorf("%d faults became %d, failed %v", len(whole.Faults), len(least.Faults), least.Failed())
	}
	if !strings.Contains(least.Table(), "server") || !strings.Contains(least.String(), fmt.Sprintf("seed %d", cfg.Seed)) {
		t.Errorf("the report cannot be read:\n%s\n%s", least, least.Table())
	}
}
