package pool

import (
	"sync"
	"time"
	"unsafe"
)

// Seconds is a time with the precision that verification needs.
type Seconds uint32

func secondsAt(t time.Time) Seconds { return Seconds(t.Unix()) }

func Now() Seconds { return secondsAt(time.Now()) }

const (
	// verifyEvery is how long a part is trusted after it was made or verified. It
	// bounds the cost: a part is verified at most that often, however often it is
	// used.
	verifyEvery Seconds = 60
	// sweepEvery is how long it takes to verify all parts of a pool once. It is
	// half of the promise, because Sweep is called only every few seconds, and a
	// part may enter its shard just after that was verified.
	sweepEvery = 5 * time.Minute
)

// Due says whether what was verified at s must be verified again. A clock that was set
// back makes everything due.
func (s Seconds) Due(now Seconds) bool { return now-s >= verifyEvery }

// sweep is the progress of the verification of all parts.
type sweep struct {
	mu sync.Mutex
	// last is when Sweep was last called, pending how many shards are due for the time
	// until then, and next the first of them.
	last    time.Time
	pending float64
	next    int
	// found says that a stray write was found, so that there may be others; full is when
	// all parts were last verified for that reason.
	found bool
	full  time.Time
}

// Sweep verifies some of the parts: as many as are due for the time since the last
// call, by any caller, so that each is verified every five minutes. When it finds
// one that a program wrote to, the next call verifies all of them, at most once a
// minute.
//
// Why not a goroutine of the pool: a pool has no end at which to stop it. Why not
// after garbage collections, when unused parts are released: a quiet process has no
// garbage collection for a long time.
func (p *Pool) Sweep(now time.Time) {
	first, n := p.sweep.nextShards(now)
	for i := range n {
		p.verifyShard(&p.shards[(first+i)%shardCount], secondsAt(now), n == shardCount)
	}
}

// Verify verifies all parts at once.
func (p *Pool) Verify() {
	for i := range p.shards {
		p.verifyShard(&p.shards[i], Now(), true)
	}
}

// nextShards returns which shards to verify now.
func (s *sweep) nextShards(now time.Time) (first, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.IsZero() {
		s.last = now
	}
	elapsed := min(max(now.Sub(s.last), 0), sweepEvery)
	s.last = now
	s.pending += shardCount * float64(elapsed) / float64(sweepEvery)
	if s.found && (now.Sub(s.full) >= time.Minute || now.Before(s.full)) {
		s.pending, s.found, s.full = shardCount, false, now
	}
	n = int(min(s.pending, shardCount))
	first, s.next = s.next, (s.next+n)%shardCount
	s.pending -= float64(n)
	return first, n
}

func (s *sweep) strayFound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = true
}

// VerifyPart verifies the part of a key whose content does not match the key.
func (p *Pool) VerifyPart(k Key) {
	s := p.shard(k)
	s.mu.Lock()
	e, due, found := s.find(k.First, Request{Owner: SeveralOwners, Now: Now(), Verify: true})
	s.mu.Unlock()
	if found && due && e.second == k.Second {
		p.intact(k.First, e)
	}
}

// verifyShard verifies the parts of a shard that are due, or all of them.
func (p *Pool) verifyShard(s *shard, now Seconds, all bool) {
	for a, e := range s.verifiable(now, all) {
		p.intact(a, e)
	}
}

// verifiable returns the parts to verify now, with their ptr set.
func (s *shard) verifiable(now Seconds, all bool) map[uint64]entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen := make(map[uint64]entry, len(s.parts))
	for a, kept := range s.parts {
		if kept.ref == nil || !all && !kept.checked.Due(now) {
			continue
		}
		kept.checked = now
		e := *kept
		if e.ptr == nil {
			e.ptr = unsafe.Pointer(e.weak.Value())
		}
		if e.ptr != nil {
			chosen[a] = e
		}
	}
	return chosen
}

// intact says whether nobody wrote to a part since it was made. Otherwise it removes the
// part and reports the write.
func (p *Pool) intact(a uint64, e entry) bool {
	d, size := checksumOf(e.ref, e.memory())
	p.VerifiedBytes.Add(uint64(size))
	if d == e.checksum {
		return true
	}
	p.shardOf(a).remove(a, e.ptr)
	p.Report(StrayWrite{Memory: e.ptr})
	return false
}

// StrayWritesSince returns the stray writes that were reported after the one with the given
// number, and the number of the last one.
func (p *Pool) StrayWritesSince(number uint64, now time.Time) (writes []StrayWrite, last uint64) {
	return p.strays.since(number, now)
}

// Report reports a write.
func (p *Pool) Report(w StrayWrite) {
	p.strays.add(w, time.Now())
	p.sweep.strayFound()
	p.Epoch.Add(1)
}
