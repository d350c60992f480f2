package wire

import (
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"
)

// past remembers the states in which objects were last met, so that the next state
// can take over what it left unchanged: an update mostly changes the status, and
// leaves a spec that no other object has in full as it was. One look here stands for
// some twenty in the pool, each on cold memory.
//
// It is each decoder's own, for a state is only good for the same Go type with the
// same fields. It keeps no object alive. Only objects that came again are noted:
// most never do.
type past struct {
	shards [pastShards]pastShard
	// epoch is that of the pool in which all was last forgotten.
	epoch atomic.Uint64
}

const (
	pastShards = 16
	// pastParts is how many parts of a state are told apart.
	pastParts = 12
	// pastSweep is how many states a shard notes at least before it looks for those
	// that are gone.
	pastSweep = 64
)

type pastShard struct {
	mu     sync.Mutex
	states map[uint64]*pastState
	sweep  int // the number of states at which to look next
}

// pastState is a state of an object: where it is, and hashes of what the parts were
// made of that can be taken over.
//
// A hash has 64 bits, where shared parts have 128: it is compared with those of a
// dozen parts, not with those of all there are, and its seed is secret.
type pastState struct {
	object weak.Pointer[byte]
	parts  pastHashes
}

type pastHashes struct {
	n      int
	hashes [pastParts]uint64
}

func (h *pastHashes) add(hash uint64) {
	if h.n < len(h.hashes) {
		h.hashes[h.n] = hash
		h.n++
	}
}

// strike takes back what was added as the nth: it cannot be taken over after all.
func (h *pastHashes) strike(n int) {
	if n < h.n {
		h.hashes[n] = 0
	}
}

func (h *pastHashes) has(hash uint64) bool {
	for _, known := range h.hashes[:h.n] {
		if known == hash {
			return true
		}
	}
	return false
}

func (p *past) shard(uid uint64) *pastShard { return &p.shards[uid%pastShards] }

// recall returns the last state of an object, nil if it is not known or gone.
func (p *past) recall(uid uint64, parts *pastHashes) unsafe.Pointer {
	s := p.shard(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[uid]
	if state == nil {
		return nil
	}
	*parts = state.parts
	return unsafe.Pointer(state.object.Value())
}

// note makes a state the last one of its object.
func (p *past) note(uid uint64, object unsafe.Pointer, parts *pastHashes) {
	w := weak.Make((*byte)(object))
	s := p.shard(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[uid]
	if state == nil {
		if s.states == nil {
			s.states = map[uint64]*pastState{}
		}
		if len(s.states) >= max(s.sweep, pastSweep) {
			s.forget()
		}
		state = new(pastState)
		s.states[uid] = state
	}
	state.object, state.parts = w, *parts
}

// distrust forgets all, because parts of what is remembered may have been changed,
// unless that has been done in this epoch of the pool.
func (p *past) distrust(epoch uint64) {
	if p.epoch.Load() == epoch {
		return
	}
	defer p.epoch.Store(epoch)
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		s.states, s.sweep = nil, 0
		s.mu.Unlock()
	}
}

// forget strikes off states that are gone. It is called when there are twice as many
// as it left the last time, so that it costs little for each.
func (s *pastShard) forget() {
	left := make(map[uint64]*pastState, len(s.states))
	for uid, state := range s.states {
		if state.object.Value() != nil {
			left[uid] = state
		}
	}
	s.states, s.sweep = left, 2*len(left)
}
