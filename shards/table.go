package shards

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"github.com/tarnproject/tarn/kube"
)

// slotCount is the number of parts that objects are divided into. A member has whole
// slots, so its share is off by at most one of them; 120 has many divisors, so that
// groups of up to six, of eight, ten or twelve are even.
const slotCount = 120

// slot says who works on the objects of one part.
type slot struct {
	// Owner works on them; empty if nobody does.
	Owner string `json:"owner,omitempty"`
	// Next is to own them, empty if that is not to change. Ready says that the copies of
	// Next have them.
	Next  string `json:"next,omitempty"`
	Ready bool   `json:"ready,omitempty"`
}

// table says who owns what.
type table [slotCount]slot

// run is some slots in a row that are alike: the form of a table in its Lease.
type run struct {
	Slots int `json:"slots"`
	slot
}

// MarshalJSON writes runs.
func (t table) MarshalJSON() ([]byte, error) {
	var runs []run
	for _, s := range t {
		if n := len(runs); n > 0 && runs[n-1].slot == s {
			runs[n-1].Slots++
			continue
		}
		runs = append(runs, run{1, s})
	}
	return json.Marshal(runs)
}

// UnmarshalJSON reads runs, which must have all slots.
func (t *table) UnmarshalJSON(raw []byte) error {
	var runs []run
	if err := json.Unmarshal(raw, &runs); err != nil {
		return err
	}
	read, n := table{}, 0
	for _, r := range runs {
		if r.Slots < 1 || n+r.Slots > slotCount {
			return fmt.Errorf("the table does not have %d slots", slotCount)
		}
		for range r.Slots {
			read[n] = r.slot
			n++
		}
	}
	if n != slotCount {
		return fmt.Errorf("the table has %d slots, expected %d", n, slotCount)
	}
	*t = read
	return nil
}

// slotOf is the slot of a hash.
func slotOf(hash uint64) int {
	i, _ := bits.Mul64(hash, slotCount)
	if next := int(i) + 1; next < slotCount && hash >= slotStart(next) {
		return next // the start of a slot is rounded down
	}
	return int(i)
}

// slotStart is the first hash of a slot.
func slotStart(i int) uint64 {
	start, _ := bits.Div64(uint64(i), 0, slotCount)
	return start
}

// setOf is the set of the slots for which has is true.
func setOf(key kube.ShardKey, has func(i int) bool) kube.ShardSet {
	var ranges []kube.HashRange
	for i := range slotCount {
		if has(i) {
			last := uint64(math.MaxUint64)
			if i+1 < slotCount {
				last = slotStart(i+1) - 1
			}
			ranges = append(ranges, kube.HashRange{First: slotStart(i), Last: last})
		}
	}
	set, _ := kube.NewShardSet(key, ranges...) // key was checked, and the ranges are not empty
	return set
}
