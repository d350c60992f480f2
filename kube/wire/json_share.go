package wire

import (
	"hash/maphash"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/recent"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// jsonParts finds the parts of objects that exist already.
//
// Most of what repeats does so at once: a list has the pods of one ReplicaSet next to
// each other. So the last few parts of each site are kept with their bytes, and a
// value that begins with such bytes is that part: a JSON object says itself where
// it ends. Before, looking for ends, hashing and the pool's locks took 60 % of the
// time for a list of real pods.
type jsonParts struct {
	pool  *pool.Pool
	sites [512]jsonSite
	kept  int // bytes of recent parts
	// hashable is how many more bytes may be hashed for the object at hand, for what
	// is nested deep is hashed at every level.
	hashable int
	epoch    uint64 // of the pool when the last object began
	time     pool.Seconds
	owner    pool.Owner
	unowned  bool // the owner is not known yet
	// lazies counts quantities that are lazy, and not the values of maps, which
	// nobody can write to: see [shape.IsLazy].
	lazies int
	// admitting says that what is being read goes into the pool.
	admitting bool
}

// jsonSite is what is known of the values at one place of objects: in a field, or
// under a name. Places that fall on the same site only mislead each other.
type jsonSite struct {
	recent.Repetition
	length uint8 // of the last slice
	recent *jsonRecent
}

// jsonRecent is the last parts of a site, in the order in which they came. They tend
// to come in that order again: the environments of a pod's containers.
type jsonRecent struct {
	next  int
	parts [8]jsonPart
}

// jsonPart is a part with its bytes.
type jsonPart struct {
	plan  *jsonPlan
	raw   []byte
	x     pool.Part
	key   pool.Key
	owner pool.Owner
}

// keptEach and keptAll bound the bytes of recent parts.
const keptEach, keptAll = 8 << 10, 128 << 10

func (ps *jsonParts) site(n uint) *jsonSite { return &ps.sites[n%uint(len(ps.sites))] }

// find returns the recent part that data begins with, or nil. One that the pool would
// verify is not found here.
func (r *jsonRecent) find(p *jsonPlan, data []byte, now pool.Seconds) *jsonPart {
	if r == nil {
		return nil
	}
	for n := range len(r.parts) {
		n = (r.next + n) % len(r.parts)
		x := &r.parts[n]
		if x.plan == p && !x.x.Checked.Due(now) && len(x.raw) <= len(data) && string(x.raw) == string(data[:len(x.raw)]) {
			r.next = (n + 1) % len(r.parts)
			return x
		}
	}
	return nil
}

// keep makes a part the most recent one.
func (ps *jsonParts) keep(at *jsonSite, p *jsonPlan, raw []byte, x pool.Part, k pool.Key) {
	if len(raw) > keptEach {
		return
	}
	if ps.kept > keptAll {
		ps.forget()
	}
	if at.recent == nil {
		at.recent = &jsonRecent{}
	}
	slot := &at.recent.parts[at.recent.next]
	at.recent.next = (at.recent.next + 1) % len(at.recent.parts)
	had := cap(slot.raw)
	slot.raw = append(slot.raw[:0], raw...)
	ps.kept += cap(slot.raw) - had
	slot.plan, slot.x, slot.key, slot.owner = p, x, k, ps.owner
}

// forget lets all recent parts go.
func (ps *jsonParts) forget() {
	for i := range ps.sites {
		ps.sites[i].recent = nil
	}
	ps.kept = 0
}

// begin prepares for an object of a size. Recent parts are used without asking the
// pool, and so forgotten when a part was found written to, by whatever decoder.
func (ps *jsonParts) begin(size int) {
	ps.hashable, ps.unowned, ps.admitting = 8*size+1024, true, false
	if ps.pool == nil {
		return
	}
	ps.time = pool.Now()
	if n := ps.pool.Epoch.Load(); n != ps.epoch {
		ps.epoch = n
		ps.forget()
	}
}

// part decodes the value at i, a slice, map or pointer, or finds it.
func (s *jsonState) part(p *jsonPlan, dst unsafe.Pointer, i int, site uint) int {
	switch s.data[i] {
	case '{', '[', '"':
	default:
		return s.fresh(p, dst, i, site)
	}
	at := s.site(site)
	if !at.Try() {
		return s.fresh(p, dst, i, site)
	}
	if known := at.recent.find(p, s.data[i:], s.time); known != nil && (!s.admitting || known.x.Intact()) {
		at.Record(true)
		s.use(known)
		p.store(dst, known.x.Memory)
		return i + len(known.raw)
	}
	return s.pooled(p, dst, i, site)
}

// pooled looks for the value at i in the pool, and offers it there.
func (s *jsonState) pooled(p *jsonPlan, dst unsafe.Pointer, i int, site uint) int {
	if s.hashable <= 0 {
		return s.fresh(p, dst, i, site)
	}
	end := jsonExtent(s.data, i)
	if end == odd {
		return odd
	}
	raw := s.data[i:end]
	if s.hashable -= len(raw); p.kind == sliceKind && len(raw) == 2 {
		return s.fresh(p, dst, i, site)
	}
	s.identify()
	at := s.site(site)
	k := s.pool.KeyOf(p.typ, raw)
	x, found := s.pool.Get(k, pool.Request{Owner: s.owner, Now: s.time, Verify: s.admitting})
	at.Record(found)
	if found {
		p.store(dst, x.Memory)
		s.keep(at, p, raw, x, k)
		return end
	}
	outer, lazies, admitting := s.texts.shelf, s.lazies, s.admitting
	s.texts.shelf, s.admitting = sharedShelf, true
	i = s.fresh(p, dst, i, site)
	s.texts.shelf, s.admitting = outer, admitting
	if i != end {
		return odd
	}
	size := p.weight(dst, len(raw))
	if s.lazies != lazies || size < pool.MinSize {
		return end
	}
	made := s.pool.Put(k, pool.NewPart(shape.RefTo(p.typ), p.load(dst), size, s.time), s.owner)
	p.store(dst, made.Memory)
	s.keep(at, p, raw, made, k)
	return end
}

// use tells the pool of the first other object that has a recent part.
func (s *jsonState) use(known *jsonPart) {
	if known.owner == pool.SeveralOwners {
		return
	}
	s.identify()
	if s.owner != pool.UnknownOwner && s.owner == known.owner {
		return
	}
	known.owner = pool.SeveralOwners
	known.x = s.pool.Put(known.key, known.x, s.owner)
}

// identify finds out whose parts these are, from the object's uid.
func (s *jsonState) identify() {
	if !s.unowned {
		return
	}
	s.unowned = false
	s.owner = pool.UnknownOwner
	i := jsonFind(s.data, jsonSpace(s.data, 0), `"metadata"`)
	i = jsonFind(s.data, i, `"uid"`)
	if i == odd || s.data[i] != '"' {
		return
	}
	if end, _ := jsonQuote(s.data, i+1); end != odd {
		s.owner = pool.OwnerOf(maphash.Bytes(s.pool.Seed, s.data[i:end]))
	}
}

// jsonFind returns the position of a member of the object at i, if there is one.
func jsonFind(data []byte, i int, name string) int {
	if i == odd || data[i] != '{' {
		return odd
	}
	for more := true; more; {
		if i = jsonSpace(data, i+1); i == odd {
			return odd
		}
		found := jsonWord(data, i, name) != odd
		if i = jsonSkipKey(data, i); i == odd || found {
			return jsonSpace(data, max(i, 0))
		}
		if i = jsonSkip(data, i, 0); i != odd {
			i = jsonSpace(data, i)
		}
		more = i != odd && data[i] == ','
	}
	return odd
}
