package wire

// smallValues are what pointers to small numbers and booleans point to. There are
// few values and many such pointers (300 and 30 seconds, port numbers, true).
//
// They are checked when they are handed out: if someone wrote to one, all objects
// that share it have changed, but no object decoded later does.
type smallValues struct {
	int32s [smallLimit]int32
	int64s [smallLimit]int64
	bools  [2]bool
}

// smallLimit bounds the numbers: 512 of them, 6 KiB for a pool.
const smallLimit = 512

func newSmallValues() *smallValues {
	s := new(smallValues)
	for i := range s.int32s {
		s.int32s[i], s.int64s[i] = int32(i), int64(i)
	}
	s.bools[1] = true
	return s
}

// heal replaces small values that someone has changed.
func (p *Pool) heal(changed *smallValues) *smallValues {
	fresh := newSmallValues()
	if p.small.CompareAndSwap(changed, fresh) {
		p.mutated()
		return fresh
	}
	return p.small.Load()
}

// int32 returns a pointer to v, shared if v is small.
func (p *Pool) int32(v int32) *int32 {
	if p == nil || uint32(v) >= smallLimit {
		return &v
	}
	small := p.small.Load()
	if small.int32s[v] != v {
		small = p.heal(small)
	}
	return &small.int32s[v]
}

// int64 returns a pointer to v, shared if v is small.
func (p *Pool) int64(v int64) *int64 {
	if p == nil || uint64(v) >= smallLimit {
		return &v
	}
	small := p.small.Load()
	if small.int64s[v] != v {
		small = p.heal(small)
	}
	return &small.int64s[v]
}

// bool returns a shared pointer to v.
func (p *Pool) bool(v bool) *bool {
	if p == nil {
		return &v
	}
	i := 0
	if v {
		i = 1
	}
	small := p.small.Load()
	if small.bools[i] != v {
		small = p.heal(small)
	}
	return &small.bools[i]
}
