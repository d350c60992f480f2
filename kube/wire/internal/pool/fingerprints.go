package pool

// fingerprintSlots makes 1 KiB for each shard, and 16,384 parts remembered by a
// pool.
const fingerprintSlots = 256

// fingerprints remember parts that were forgotten, and who had them: a part that
// another object brings again is shared after all, only more slowly than the young
// stay young. A later part takes an earlier one's place; a wrong answer, one in
// 65,536, costs a weak pointer and nothing else.
type fingerprints []uint32

func (f *fingerprints) note(a uint64, by Owner) {
	if *f == nil {
		*f = make(fingerprints, fingerprintSlots)
	}
	(*f)[a>>16%fingerprintSlots] = fingerprint(a, by)
}

// knows says whether another owner had the part before.
func (f fingerprints) knows(a uint64, by Owner) bool {
	if f == nil {
		return false
	}
	had, now := f[a>>16%fingerprintSlots], fingerprint(a, by)
	return had>>16 == now>>16 && (by == UnknownOwner || had != now)
}

func fingerprint(a uint64, by Owner) uint32 {
	return uint32(a&0xffff)<<16 | uint32(by)&0xffff
}
