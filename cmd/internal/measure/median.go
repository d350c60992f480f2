package measure

import (
	"cmp"
	"slices"
	"time"
)

// Median takes each figure's median over several results. For an even number it takes the
// lower one of the two in the middle, so that each value was really measured.
func Median(results []Result) Result {
	if len(results) == 0 {
		return Result{}
	}
	return Result{
		Objects:     middle(results, func(r Result) int { return r.Objects }),
		Typed:       results[0].Typed,
		Transport:   results[0].Transport,
		Sync:        middle(results, func(r Result) time.Duration { return r.Sync }),
		CPU:         middle(results, func(r Result) time.Duration { return r.CPU }),
		Heap:        middle(results, func(r Result) uint64 { return r.Heap }),
		HeapObjects: middle(results, func(r Result) uint64 { return r.HeapObjects }),
		Peak:        middle(results, func(r Result) uint64 { return r.Peak }),
	}
}

func middle[T cmp.Ordered](results []Result, figure func(Result) T) T {
	var all []T
	for _, r := range results {
		all = append(all, figure(r))
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}
