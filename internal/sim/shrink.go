package sim

import "github.com/tarnproject/tarn/faults"

// Shrink finds a smaller day that still fails: first with fewer writes, then with fewer
// faults, by leaving out halves, quarters and so on of them. A fault has the same place
// in every run of one seed, so leaving one out does not change the others.
func Shrink(cfg Config, run func(Config) *Report) *Report {
	best := run(cfg)
	if !best.Failed() {
		return best
	}
	for writes := best.Config.Writes / 2; writes >= 5; writes /= 2 {
		smaller := cfg
		smaller.Writes = writes
		if r := run(smaller); r.Failed() {
			best, cfg = r, smaller
		}
	}
	suppressed := map[faults.Place]bool{}
	for size := max(len(best.Faults)/2, 1); ; size /= 2 {
		for start := 0; start < len(best.Faults); {
			try := cfg
			without := map[faults.Place]bool{}
			for p := range suppressed {
				without[p] = true
			}
			for _, f := range best.Faults[start:min(start+size, len(best.Faults))] {
				without[f.Place] = true
			}
			try.Suppress = func(p faults.Place) bool { return without[p] }
			if r := run(try); r.Failed() {
				best, suppressed = r, without
			} else {
				start += size
			}
		}
		if size <= 1 {
			return best
		}
	}
}
