//go:build !race

package ondisk

const raceEnabled = false
