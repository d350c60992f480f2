package pool

import (
	"encoding/binary"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"
	"weak"

	"pgregory.net/rapid"

	"github.com/tarnproject/tarn/internal/testsize"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// payload is a part that is large enough for a weak pointer.
type payload struct {
	n    int
	next *payload
	_    [64]byte
}

func numbered(p *Pool, n int) Key {
	return p.KeyOf(reflect.TypeFor[payload](), binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func (p *Pool) offer(k Key, x *payload, by Owner) *payload {
	return (*payload)(p.Put(k, Part{Memory: shape.Memory{Ptr: unsafe.Pointer(x), N: 1}, Size: int(unsafe.Sizeof(*x))}, by).Ptr)
}

func (p *Pool) lookup(k Key, by Owner) *payload {
	x, _ := p.Get(k, Request{Owner: by})
	return (*payload)(x.Ptr)
}

func TestPoolComparesBothHalvesOfAKey(t *testing.T) {
	p := New()
	k := numbered(p, 1)
	other := Key{k.First, k.Second + 1}
	first, second := &payload{n: 1}, &payload{n: 2}
	p.offer(k, first, 1)
	if got := p.lookup(other, 2); got != nil {
		t.Errorf("half a key finds %v", got)
	}
	if got := p.offer(other, second, 2); got != second {
		t.Errorf("half a key gets %v instead of its own", got)
	}
	p.shard(other).remove(other.First, unsafe.Pointer(second))
	if got := p.lookup(k, 3); got != first {
		t.Errorf("the part was removed for another one: %v", got)
	}
}

func TestPoolFirstOneStays(t *testing.T) {
	p := New()
	k := numbered(p, 1)
	first, second := &payload{n: 1}, &payload{n: 2}
	if p.offer(k, first, 1) != first || p.offer(k, second, 2) != first || p.lookup(k, 3) != first {
		t.Error("the part that was there first is not the one that is used")
	}
	if got := p.Stats(); got.Parts != 1 || got.Young != 1 || got.Hits != 2 {
		t.Errorf("stats %+v", got)
	}
}

func TestPoolKeyTellsTypesApart(t *testing.T) {
	p := New()
	raw := []byte("same")
	if p.KeyOf(reflect.TypeFor[string](), raw) == p.KeyOf(reflect.TypeFor[[]byte](), raw) {
		t.Error("one key for two types")
	}
	if p.KeyOf(reflect.TypeFor[string](), raw) == New().KeyOf(reflect.TypeFor[string](), raw) {
		t.Error("two pools with the same keys: their seeds can be guessed")
	}
}

func TestPoolGenerations(t *testing.T) {
	p := New()
	var alive []*payload
	var gone []weak.Pointer[payload]
	for n := range 40 {
		x := p.offer(numbered(p, n), &payload{n: n}, 7)
		if n%4 < 2 {
			p.lookup(numbered(p, n), 8) // shared
		} else {
			p.lookup(numbered(p, n), 7) // used again by the same object
		}
		if n%2 == 0 {
			alive = append(alive, x)
		} else {
			gone = append(gone, weak.Make(x))
		}
	}
	wiretest.CollectUntil(t, func() bool { return p.Stats().Parts == 10 })
	for n := range 40 {
		x := p.lookup(numbered(p, n), 9)
		if want := n%4 == 0; (x != nil) != want {
			t.Errorf("part %d, shared %v, in use %v: found %v", n, n%4 < 2, n%2 == 0, x != nil)
		} else if want && x != alive[n/2] {
			t.Errorf("part %d is another one", n)
		}
	}
	for i, w := range gone {
		if w.Value() != nil {
			t.Errorf("part %d is held though nobody uses it", i)
		}
	}
	for range 20 { // much later
		runtime.GC()
		p.Collect()
	}
	for n := 0; n < 40; n += 4 {
		if p.lookup(numbered(p, n), 9) != alive[n/2] {
			t.Errorf("part %d, in use and not asked for a while, is lost", n)
		}
	}
	runtime.KeepAlive(alive)
	alive = nil
	wiretest.CollectUntil(t, func() bool { return p.Stats().Parts == 0 })
}

// A dropped part that comes again is shared from then on.
func TestPoolRemembersForgotten(t *testing.T) {
	p := New()
	var used []*payload
	for round := range 3 {
		for n := range 100 {
			x := p.lookup(numbered(p, n), Owner(1+round))
			if x == nil {
				x = p.offer(numbered(p, n), &payload{n: n}, Owner(1+round))
			}
			used = append(used, x)
		}
		p.Collect()
	}
	found := 0
	for n := range 100 {
		if used[100+n] == used[200+n] {
			found++
		}
	}
	if found < 95 {
		t.Errorf("%d of 100 parts are shared when they come for the third time", found)
	}
	// A part that one object brings again and again is not shared.
	before := p.Stats().Old
	for range 3 {
		for n := range 100 {
			if k := numbered(p, 1000+n); p.lookup(k, Owner(100+n)) == nil {
				used = append(used, p.offer(k, &payload{n: n}, Owner(100+n)))
			}
		}
		p.Collect()
	}
	if got := p.Stats().Old - before; got > 3 {
		t.Errorf("%d of 100 parts that one object brought again became old", got)
	}
	runtime.KeepAlive(used)
}

func TestPoolIsBounded(t *testing.T) {
	p := New()
	for n := range testsize.Of(200_000, 50_000) {
		p.offer(numbered(p, n), &payload{n: n}, Owner(1+n))
	}
	stats := p.Stats()
	if stats.Young > shardCount*(youngParts+1) || stats.Old > 100 {
		t.Errorf("stats %+v", stats)
	}
	big := New()
	for n := range 1000 {
		k := numbered(big, n)
		big.Put(k, Part{Memory: shape.Memory{Ptr: unsafe.Pointer(&payload{}), N: 1}, Size: 1 << 20}, UnknownOwner)
	}
	if stats := big.Stats(); stats.Bytes > 2*shardCount<<20 {
		t.Errorf("stats %+v", stats)
	}
}

// A pool and its content are collected when nothing refers to the pool.
func TestPoolIsGarbage(t *testing.T) {
	p := New()
	x := weak.Make(p.offer(numbered(p, 1), &payload{}, UnknownOwner))
	w := weak.Make(p)
	runtime.KeepAlive(p)
	wiretest.CollectUntil(t, func() bool { return w.Value() == nil && x.Value() == nil })
}

// Weak pointers of every kind of part: the memory of slices, maps, strings and
// structs is found while any piece of it is in use.
func TestPoolKindsOfParts(t *testing.T) {
	p := New()
	list := []payload{{n: 1}, {n: 2}, {n: 3}}
	table := map[string]string{"a": "b"}
	word := string(slices.Repeat([]byte("word"), 20))
	parts := []shape.Memory{
		{Ptr: unsafe.Pointer(unsafe.SliceData(list)), N: 3},
		{Ptr: *(*unsafe.Pointer)(unsafe.Pointer(&table)), N: 1},
		{Ptr: unsafe.Pointer(unsafe.StringData(word)), N: len(word)},
	}
	for n, x := range parts {
		p.Put(numbered(p, n), Part{Memory: x, Size: 100}, UnknownOwner)
		p.Get(numbered(p, n), Request{})
	}
	last := &list[2]
	tail := word[70:]
	addresses := [3]uintptr{uintptr(parts[0].Ptr), uintptr(parts[1].Ptr), uintptr(parts[2].Ptr)}
	clear(parts)
	list, word = nil, ""
	for range 5 {
		runtime.GC()
		p.Collect()
	}
	for n, want := range addresses {
		if x, ok := p.Get(numbered(p, n), Request{}); !ok || uintptr(x.Ptr) != want {
			t.Errorf("part %d is lost", n)
		}
	}
	runtime.KeepAlive(last)
	runtime.KeepAlive(tail)
	runtime.KeepAlive(table)
	wiretest.CollectUntil(t, func() bool { return p.Stats().Parts == 0 })
}

// The pool against a plain model: it only returns the part that was first offered
// and is still in use.
func TestPoolModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := New()
		inUse := map[int]*payload{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 20).Draw(t, "n")
			by := Owner(rapid.IntRange(1, 4).Draw(t, "owner"))
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				p.Collect()
			case 1:
				delete(inUse, n)
			default:
				x := p.lookup(numbered(p, n), by)
				if x == nil {
					x = p.offer(numbered(p, n), &payload{n: n}, by)
				}
				if x.n != n {
					t.Fatalf("part %d for %d", x.n, n)
				}
				inUse[n] = x
			}
		}
		stats := p.Stats()
		if stats.Parts != stats.Young+stats.Old || stats.Young > 21 {
			t.Fatalf("stats %+v", stats)
		}
	})
}

// Distinct objects come and go; afterwards the pool is as small as before.
func TestPoolChurn(t *testing.T) {
	if testing.Short() {
		t.Skip("a million parts")
	}
	p := New()
	heap := func() uint64 {
		for range 3 {
			runtime.GC()
			p.Collect()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var live []*payload
	for n := range 100 {
		live = append(live, p.offer(numbered(p, n), &payload{n: n}, 1))
		p.lookup(numbered(p, n), 2)
	}
	before := heap()
	start := time.Now()
	for n := 100; n < 1_000_000; n++ {
		x := p.offer(numbered(p, n), &payload{n: n}, Owner(n))
		if n%10 == 0 { // one in ten is shared for a while
			p.lookup(numbered(p, n), Owner(n+1))
		}
		_ = x
	}
	t.Logf("%v for each part", time.Since(start)/1_000_000)
	after := heap()
	if stats := p.Stats(); stats.Parts != 100 {
		t.Errorf("stats %+v", stats)
	}
	// Fingerprints remain, and nothing else.
	if allowed := before + 512<<10; after > allowed {
		t.Errorf("the heap was %d KiB and is %d KiB", before>>10, after>>10)
	}
	for n, x := range live {
		if p.lookup(numbered(p, n), 3) != x {
			t.Errorf("part %d, in use all the time, is lost", n)
		}
	}
}

// After a collection a shard's map is not larger than its parts need.
func TestPoolMapShrinks(t *testing.T) {
	p := New()
	var kept []*payload
	for n := range 40_000 {
		by := Owner(1)
		x := &payload{n: n}
		if n%3 == 0 { // a part that two objects use stays while it is in use
			p.offer(numbered(p, n), x, by)
			by = Owner(2)
			kept = append(kept, x)
		}
		p.offer(numbered(p, n), x, by)
	}
	for i := range p.shards {
		s := &p.shards[i]
		s.collect(true)
		if need := len(s.parts) + len(s.parts)/8; mapSlots(need) < mapSlots(s.peak) {
			t.Fatalf("shard %d has %d parts in a map that was made for %d", i, len(s.parts), s.peak)
		}
	}
	runtime.KeepAlive(kept)
}
