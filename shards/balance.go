package shards

import (
	"cmp"
	"slices"
)

// balance returns the table with a next owner for each slot whose owner has too many, or
// is not among the members, which are those that stay. As few slots move as possible.
// Slots of owners that are known to be dead lose them.
func (t table) balance(members []string, dead func(owner string) bool) table {
	for i := range t {
		s := &t[i]
		if s.Owner != "" && dead(s.Owner) {
			s.Owner, s.Ready = "", false
		}
		if s.Next != "" && !slices.Contains(members, s.Next) {
			s.Next, s.Ready = "", false
		}
	}
	if len(members) == 0 {
		return t
	}
	quota := t.quotas(members)
	var free []int
	for i := range t {
		if to := t[i].successor(); quota[to] > 0 {
			quota[to]--
		} else {
			free = append(free, i) // a member keeps its first slots
		}
	}
	for _, m := range slices.Sorted(slices.Values(members)) {
		for ; quota[m] > 0 && len(free) > 0; quota[m]-- {
			t[free[0]].give(m)
			free = free[1:]
		}
	}
	return t
}

// successor is who owns the slot once nothing is to change.
func (s slot) successor() string { return cmp.Or(s.Next, s.Owner) }

// give makes a member the next owner.
func (s *slot) give(to string) {
	s.Next, s.Ready = to, false
	if s.Owner == to {
		s.Next = ""
	}
}

// quotas is how many slots each member should have. The remainder of the division goes to the
// members that have most.
func (t table) quotas(members []string) map[string]int {
	has := map[string]int{}
	for _, s := range t {
		has[s.successor()]++
	}
	order := slices.SortedFunc(slices.Values(members), func(a, b string) int {
		return cmp.Or(-cmp.Compare(has[a], has[b]), cmp.Compare(a, b))
	})
	quota := map[string]int{}
	for i, m := range order {
		quota[m] = slotCount / len(members)
		if i < slotCount%len(members) {
			quota[m]++
		}
	}
	return quota
}
