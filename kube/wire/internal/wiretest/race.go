//go:build race

package wiretest

// RaceEnabled says whether the race detector is on.
const RaceEnabled = true

// Some returns every eighth of the cases of a test without goroutines: the test
// takes ten times as long with the race detector, which still checks the use of
// unsafe pointers. make proofs runs all cases without it.
func Some[T any](all []T) (some []T) {
	for i := 0; i < len(all); i += 8 {
		some = append(some, all[i])
	}
	return some
}
