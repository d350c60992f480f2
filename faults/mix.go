package faults

import "math/rand/v2"

// Mix says how likely each kind of fault is, from 0 (never, also for a kind that is
// missing) to 1 (always). [Kind] says to what the chance applies.
type Mix map[Kind]float64

// usual is the chance of each kind on an average day. Faults of a whole stream may
// be frequent; faults of single events must be rare.
var usual = Mix{
	Refuse: 0.03, Expire: 0.03, TooNew: 0.02, Busy: 0.02, BusyFor: 0.02, Internal: 0.02, Fail: 0.02,
	NoWatchList: 0.01, Hang: 0.01, Delay: 0.1,
	ExpireToken: 0.1, NoList: 0.02, NoVersion: 0.02,
	Stall: 0.05, CutEnd: 0.1, CutExpire: 0.05, CutBusy: 0.05, CutInternal: 0.05, CutFail: 0.1,
	Reset: 0.05, Truncate: 0.05, Garble: 0.02,
	Duplicate: 0.02, Replay: 0.01, Reorder: 0.02, Lag: 0.02, DropBookmark: 0.2, DropEnd: 0.05,
	Endless: 0.02, Undecodable: 0.002,
	Bad: 0.002, Corrupt: 0.002, Oversize: 0.002,
	Rewind: 0.02, Wipe: 0.005,
	CutList: 0.05,
}

// dayMix draws the mix of a day: whether a kind occurs, and with which chance,
// from a fifth of the usual one to five times of it.
//
// Why not every kind on every day: faults hide each other. If connections are
// refused all the time, no stream lasts long enough to be reordered, and no day
// would have lost bookmarks and nothing else.
func dayMix(seed uint64) Mix {
	g := rand.New(rand.NewPCG(scramble(seed), scramble(^seed)))
	day := fifthToFive(g)
	mix := Mix{}
	for _, kind := range kinds {
		present, scale := g.IntN(2) == 0, day*fifthToFive(g)
		if present {
			mix[kind] = min(usual[kind]*min(max(scale, 0.2), 5), 0.5)
		}
	}
	return mix
}
