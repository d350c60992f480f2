//go:build !race

package wiretest

// RaceEnabled says whether the race detector is on.
const RaceEnabled = false

// Some is all of the cases.
func Some[T any](all []T) []T { return all }
