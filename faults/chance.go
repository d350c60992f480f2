package faults

import (
	"math"
	"math/rand/v2"
	"time"
)

// scramble spreads a number's bits over all 64 (the finalizer of SplitMix64).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fifthToFive draws a factor, as likely below 1 as above.
func fifthToFive(g *rand.Rand) float64 { return math.Pow(5, 2*g.Float64()-1) }

// count draws from 0 to most, small numbers more often than large ones.
func count(g *rand.Rand, most int64) int64 {
	return min(int64(math.Pow(float64(most)+2, g.Float64()))-1, most)
}

// upTo draws a time from a millisecond to most, short ones more often than long
// ones.
func upTo(g *rand.Rand, most time.Duration) time.Duration {
	least := min(time.Millisecond, most)
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), g.Float64()))
}

// short writes a time as people do.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}
