package memory

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// table finds cells by key. One writer changes it; readers need no lock.
//
// It is a hash table of groups of eight, like Go's own map: a word holds seven bits
// of each key's hash, so that nearly every probe reads one cell only. It is divided
// into shards by the first bits of the hash, so that no write has to move more than
// a shard's worth of cells.
//
// What makes reading beside a writer safe: a cell never moves within a shard; its
// slot is set before its tag, and its tag is cleared before its slot; and an
// outgrown shard is not changed, for the readers that still use it. A reader that
// loads the shard after a state finds every cell of that state.
//
// Why not a Go map: it would need a lock, and a reader that is preempted while
// holding it makes everyone wait. Why not sync.Map: Load allocates to pass a
// string, and each entry costs three times as much.
type table[T any] struct {
	seed maphash.Seed
	dir  atomic.Pointer[directory[T]]
}

// directory has the shard for each value of the first bits of a hash. A shard that
// needs fewer bits is at all positions that begin with them.
type directory[T any] struct {
	shift  uint
	shards []atomic.Pointer[shard[T]]
}

type shard[T any] struct {
	depth  uint // how many bits lead here
	groups []group[T]
	// taken counts slots that are not free, live those with a cell.
	taken, live int
}

const (
	slots     = 8
	maxGroups = 128

	free    = 0x00 // ends a search
	deleted = 0x01 // does not
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
)

type group[T any] struct {
	tags  atomic.Uint64
	cells [slots]atomic.Pointer[cell[T]]
}

func newTable[T any]() *table[T] {
	t := &table[T]{seed: maphash.MakeSeed()}
	t.dir.Store(newDirectory[T](0, 1))
	return t
}

func newDirectory[T any](depth uint, groups int) *directory[T] {
	d := &directory[T]{shift: 64 - depth, shards: make([]atomic.Pointer[shard[T]], 1<<depth)}
	for i := range d.shards {
		d.shards[i].Store(&shard[T]{depth: depth, groups: make([]group[T], groups)})
	}
	return d
}

func (t *table[T]) hash(key tarn.Key) uint64 { return maphash.String(t.seed, string(key)) }

func (d *directory[T]) shard(hash uint64) *shard[T] { return d.shards[hash>>d.shift].Load() }

func tagOf(hash uint64) uint64 { return hash&0x7f | 0x80 }

// with marks the bytes of tags that may be tag. A marked byte may be another tag;
// no matching byte is missed.
func with(tags, tag uint64) uint64 {
	x := tags ^ ones*tag
	return (x - ones) &^ x & highs
}

func slotOf(marks uint64) int { return bits.TrailingZeros64(marks) / 8 }

func tagAt(tags uint64, slot int) uint64 { return tags >> (8 * slot) & 0xff }

func setTag(tags uint64, slot int, tag uint64) uint64 {
	return tags&^(0xff<<(8*slot)) | tag<<(8*slot)
}

// find returns the cell of a key, nil if there is none.
func (t *table[T]) find(key tarn.Key) *cell[T] { return t.seek(key, t.hash(key)) }

// seek is find where the hash is known.
func (t *table[T]) seek(key tarn.Key, hash uint64) *cell[T] {
	s := t.dir.Load().shard(hash)
	mask := len(s.groups) - 1
	at := int(hash>>7) & mask
	for i := 1; ; i++ {
		g := &s.groups[at]
		tags := g.tags.Load()
		for m := with(tags, tagOf(hash)); m != 0; m &= m - 1 {
			if c := g.cells[slotOf(m)].Load(); c != nil && c.key == key {
				return c
			}
		}
		if with(tags, free) != 0 {
			return nil
		}
		at = (at + i) & mask
	}
}

// insert adds a cell whose key, of this hash, is not in the table.
func (t *table[T]) insert(c *cell[T], hash uint64) {
	for {
		s := t.dir.Load().shard(hash)
		if s.taken < len(s.groups)*slots*7/8 {
			s.put(hash, c)
			return
		}
		t.grow(hash, s)
	}
}

func (s *shard[T]) put(hash uint64, c *cell[T]) {
	mask := len(s.groups) - 1
	at := int(hash>>7) & mask
	for i := 1; ; i++ {
		g := &s.groups[at]
		tags := g.tags.Load()
		if open := ^tags & highs; open != 0 {
			slot := slotOf(open)
			g.cells[slot].Store(c)
			if tagAt(tags, slot) == free {
				s.taken++
			}
			s.live++
			g.tags.Store(setTag(tags, slot, tagOf(hash)))
			return
		}
		at = (at + i) & mask
	}
}

// remove removes a cell.
func (t *table[T]) remove(c *cell[T]) {
	hash := t.hash(c.key)
	s := t.dir.Load().shard(hash)
	mask := len(s.groups) - 1
	at := int(hash>>7) & mask
	for i := 1; ; i++ {
		g := &s.groups[at]
		tags := g.tags.Load()
		for m := with(tags, tagOf(hash)); m != 0; m &= m - 1 {
			slot := slotOf(m)
			if g.cells[slot].Load() != c {
				continue
			}
			left := uint64(deleted)
			if with(tags, free) != 0 { // no search continues from here
				left = free
				s.taken--
			}
			s.live--
			g.tags.Store(setTag(tags, slot, left))
			g.cells[slot].Store(nil)
			return
		}
		if with(tags, free) != 0 {
			return
		}
		at = (at + i) & mask
	}
}

// grow makes room in a shard: it removes deleted slots, doubles the shard, or
// splits it in two.
func (t *table[T]) grow(hash uint64, s *shard[T]) {
	d := t.dir.Load()
	groups := len(s.groups)
	if s.live > groups*slots/2 {
		groups *= 2
	}
	if groups <= maxGroups {
		bigger := &shard[T]{depth: s.depth, groups: make([]group[T], groups)}
		t.move(s, func(uint64) *shard[T] { return bigger })
		d.replace(hash, s, func(int) *shard[T] { return bigger })
		return
	}
	if d.shift == 64-s.depth {
		d = d.doubled()
	}
	var halves [2]*shard[T]
	for i := range halves {
		halves[i] = &shard[T]{depth: s.depth + 1, groups: make([]group[T], maxGroups)}
	}
	bit := func(hash uint64) int { return int(hash >> (63 - s.depth) & 1) }
	t.move(s, func(hash uint64) *shard[T] { return halves[bit(hash)] })
	d.replace(hash, s, func(place int) *shard[T] { return halves[bit(uint64(place)<<d.shift)] })
	t.dir.Store(d)
}

// move copies the cells of a shard to their new shards.
func (t *table[T]) move(from *shard[T], to func(hash uint64) *shard[T]) {
	for i := range from.groups {
		for slot := range slots {
			if c := from.groups[i].cells[slot].Load(); c != nil {
				hash := t.hash(c.key)
				to(hash).put(hash, c)
			}
		}
	}
}

// replace puts other shards at all positions of s.
func (d *directory[T]) replace(hash uint64, s *shard[T], by func(place int) *shard[T]) {
	width := 1 << (64 - d.shift - s.depth)
	start := int(hash>>d.shift) &^ (width - 1)
	for place := start; place < start+width; place++ {
		d.shards[place].Store(by(place))
	}
}

func (d *directory[T]) doubled() *directory[T] {
	twice := &directory[T]{shift: d.shift - 1, shards: make([]atomic.Pointer[shard[T]], 2*len(d.shards))}
	for i := range twice.shards {
		twice.shards[i].Store(d.shards[i/2].Load())
	}
	return twice
}

// reserve makes room for a large number of cells at once, if there are none yet.
func (t *table[T]) reserve(cells int) {
	if s := t.dir.Load(); cells < slots || len(s.shards) > 1 || s.shards[0].Load().live > 0 {
		return
	}
	depth, groups := uint(0), 1
	for groups<<depth*slots*3/4 < cells {
		if groups < maxGroups {
			groups *= 2
		} else {
			depth++
		}
	}
	t.dir.Store(newDirectory[T](depth, groups))
}
