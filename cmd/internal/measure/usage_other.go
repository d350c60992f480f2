//go:build !unix

package measure

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }

// resetPeak and peakMemory are not known here either.
func resetPeak() uint64 { return 0 }

func peakMemory() uint64 { return 0 }
