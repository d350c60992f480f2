package json

import (
	"hash/maphash"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/recent"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// partFinder finds the parts of objects that exist already.
//
// Most of what repeats does so at once: a list has the pods of one ReplicaSet next to
// each other. So the last few parts of each site are kept with their bytes, and a
// value that begins with such bytes is that part: a JSON object says itself where
// it ends. Before, looking for ends, hashing and the pool's locks took 60 % of the
// time for a list of real pods.
type partFinder struct {
	pool  *pool.Pool
	sites [512]site
	kept  int // bytes of recent parts
	// hashable is how many more bytes of this object may be hashed: deeply
	// nested bytes are hashed at every level.
	hashable     int
	epoch        uint64 // the pool's epoch when the last object began
	time         pool.Seconds
	owner        pool.Owner
	ownerUnknown bool // the owner is not known yet
	// lazies counts the lazy quantities that are not values of maps: see [shape.IsLazy].
	lazies int
	// admitting says that what is being read goes into the pool.
	admitting bool
}

// site is what the reader learned about the values at one place of objects: in
// a field, or under a name. Two places with the same site share its statistics,
// which costs lookups.
type site struct {
	recent.Repetition
	length uint8 // length of the last slice
	recent *recentParts
}

// recentParts are the last parts of a site, in the order in which they came. They tend to
// come in that order again, such as the environments of a pod's containers. They are not
// in a [recent.Table], because the end of a value is not known before it is compared, and
// so its bytes cannot be hashed.
type recentParts struct {
	next  int
	parts [8]recentPart
}

// recentPart is a part with its bytes.
type recentPart struct {
	plan  *plan
	raw   []byte
	x     pool.Part
	key   pool.Key
	owner pool.Owner
}

// maxKeptEach and maxKept bound the bytes of recent parts.
const maxKeptEach, maxKept = 8 << 10, 128 << 10

func (ps *partFinder) site(n uint) *site { return &ps.sites[n%uint(len(ps.sites))] }

// find returns the recent part that data begins with, or nil. A part that is due to be
// verified is not found.
func (r *recentParts) find(p *plan, data []byte, now pool.Seconds) *recentPart {
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
func (ps *partFinder) keep(at *site, p *plan, raw []byte, x pool.Part, k pool.Key) {
	if len(raw) > maxKeptEach {
		return
	}
	if ps.kept > maxKept {
		ps.forget()
	}
	if at.recent == nil {
		at.recent = &recentParts{}
	}
	slot := &at.recent.parts[at.recent.next]
	at.recent.next = (at.recent.next + 1) % len(at.recent.parts)
	had := cap(slot.raw)
	slot.raw = append(slot.raw[:0], raw...)
	ps.kept += cap(slot.raw) - had
	slot.plan, slot.x, slot.key, slot.owner = p, x, k, ps.owner
}

// forget drops all recent parts.
func (ps *partFinder) forget() {
	for i := range ps.sites {
		ps.sites[i].recent = nil
	}
	ps.kept = 0
}

// begin prepares for an object of a size. Recent parts are used without a
// lookup in the pool, so begin forgets them when any decoder has found a stray
// write.
func (ps *partFinder) begin(size int) {
	ps.hashable, ps.ownerUnknown, ps.admitting = 8*size+1024, true, false
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
func (s *reader) part(p *plan, dst unsafe.Pointer, i int, site uint) int {
	switch s.data[i] {
	case '{', '[', '"':
	default:
		return s.decodeNew(p, dst, i, site)
	}
	at := s.site(site)
	if !at.Try() {
		return s.decodeNew(p, dst, i, site)
	}
	if known := at.recent.find(p, s.data[i:], s.time); known != nil && (!s.admitting || known.x.Intact()) {
		at.Record(true)
		s.use(known)
		p.store(dst, known.x.Memory)
		return i + len(known.raw)
	}
	return s.pooled(p, dst, i, site)
}

// pooled looks up the value at i in the pool, and offers it if it is missing.
func (s *reader) pooled(p *plan, dst unsafe.Pointer, i int, site uint) int {
	if s.hashable <= 0 {
		return s.decodeNew(p, dst, i, site)
	}
	end := extent(s.data, i)
	if end == irregular {
		return irregular
	}
	raw := s.data[i:end]
	if s.hashable -= len(raw); p.kind == sliceKind && len(raw) == 2 {
		return s.decodeNew(p, dst, i, site)
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
	outer, lazies, admitting := s.texts.current, s.lazies, s.admitting
	s.texts.current, s.admitting = sharedArena, true
	i = s.decodeNew(p, dst, i, site)
	s.texts.current, s.admitting = outer, admitting
	if i != end {
		return irregular
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

// use reports to the pool the first other object that has a recent part.
func (s *reader) use(known *recentPart) {
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

// identify finds the owner of the parts from the object's uid.
func (s *reader) identify() {
	if !s.ownerUnknown {
		return
	}
	s.ownerUnknown = false
	s.owner = pool.UnknownOwner
	i := findMember(s.data, skipSpace(s.data, 0), `"metadata"`)
	i = findMember(s.data, i, `"uid"`)
	if i == irregular || s.data[i] != '"' {
		return
	}
	if end, _ := findQuote(s.data, i+1); end != irregular {
		s.owner = pool.OwnerOf(maphash.Bytes(s.pool.Seed, s.data[i:end]))
	}
}

// findMember returns the position of a member of the object at i, if there is one.
func findMember(data []byte, i int, name string) int {
	if i == irregular || data[i] != '{' {
		return irregular
	}
	for more := true; more; {
		if i = skipSpace(data, i+1); i == irregular {
			return irregular
		}
		found := matchWord(data, i, name) != irregular
		if i = skipKey(data, i); i == irregular || found {
			return skipSpace(data, max(i, 0))
		}
		if i = skipValue(data, i, 0); i != irregular {
			i = skipSpace(data, i)
		}
		more = i != irregular && data[i] == ','
	}
	return irregular
}
