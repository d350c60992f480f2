package pool

import "github.com/tarnproject/tarn/kube/wire/internal/recent"

// fingerprintSlots makes 1 KiB for each shard, and 16,384 remembered parts for a
// pool.
const fingerprintSlots = 256

// fingerprints remember the parts that were dropped or not admitted, and their
// owners. A part that another object brings again is shared after all, even if it
// left the young generation too early. A wrong answer, one in 65,536, costs a weak
// pointer and nothing else.
//
// A fingerprint is 16 bits of the part's key and 16 bits of its owner.
type fingerprints struct {
	table recent.Table[uint32]
}

func (f *fingerprints) note(a uint64, by Owner) {
	*f.table.Slot(a>>16, fingerprintSlots) = fingerprint(a, by)
}

// knows says whether another owner had the part before.
func (f *fingerprints) knows(a uint64, by Owner) bool {
	if f.table.Empty() {
		return false
	}
	had, now := *f.table.Slot(a>>16, fingerprintSlots), fingerprint(a, by)
	return had>>16 == now>>16 && (by == UnknownOwner || had != now)
}

func fingerprint(a uint64, by Owner) uint32 {
	return uint32(a&0xffff)<<16 | uint32(by)&0xffff
}
