//go:build !race

package wire

const raceEnabled = false

// Some is all of the cases.
func Some[T any](all []T) []T { return all }
