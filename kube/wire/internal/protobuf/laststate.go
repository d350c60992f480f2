package protobuf

import (
	"hash/maphash"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// minTakeOver is how many bytes a part must have to be compared with the last
// state. From minOwnText bytes on a part has text of its own, so that later states
// that take it over do not keep all text of this one.
const (
	minTakeOver = 64
	minOwnText  = 128
)

// lastState is what a reader knows of the last state of the object that it decodes.
type lastState struct {
	event Event
	held  Held
	// mayHaveLast says that there may be a last state, verify that parts taken over
	// from it must be verified.
	mayHaveLast, verify bool
	// readAt is when the object was read.
	readAt pool.Seconds
	// name and namespace are slices of the object's bytes. uid is the hash of the
	// object's uid, 0 until that is read.
	name, namespace []byte
	uid             uint64
	// before has the hashes of the last state, now those of this one. all says that
	// the last state has more than one.
	before, now partHashes
	all         bool
	window      window
	hashed      struct {
		i, end int
		hash   uint64
	}
}

// window is the memory being decoded into, and the same memory in the last state,
// nil if there is none. place distinguishes it from other windows of the object.
type window struct {
	base, last unsafe.Pointer
	size       uintptr
	place      uint64
}

// begin prepares for a new object at base.
func (l *lastState) begin(base unsafe.Pointer, size uintptr, m Event, held Held) {
	l.event, l.held, l.mayHaveLast, l.uid = m, held, m >= Modified, 0
	l.verify, l.readAt = false, pool.Now()
	l.before.n, l.now.n, l.now.checked = 0, 0, l.readAt
	l.hashed.end = 0
	l.window = window{base: base, size: size}
}

// leave drops all references to the object and its bytes.
func (l *lastState) leave() {
	l.held, l.name, l.namespace, l.window = nil, nil, nil, window{}
}

// identify records a text that identifies the object. At the uid, which servers
// write after the name, it looks for the last state.
func (r *reader) identify(what identity, raw []byte) {
	switch what {
	case isName:
		r.name = raw
	case isNamespace:
		r.namespace = raw
	case isUID:
		r.uid = maphash.Bytes(r.pool.Seed, raw)
		r.owner = pool.OwnerOf(r.uid)
		if r.mayHaveLast {
			r.recall()
		}
	}
}

// recall finds the last state and its hashes.
func (r *reader) recall() {
	last := r.heldState()
	if last == nil {
		return
	}
	if r.all = r.decoder.lastStates.recall(r.uid, &r.before); r.before.n > 0 {
		r.before.applySalt(r.salt(last))
		r.window.last = last
		if r.verify = r.before.checked.Due(r.readAt); !r.verify {
			r.now.checked = r.before.checked
		}
	}
}

// heldState returns the state that the caller holds of the object, nil if it holds
// none of this type.
func (r *reader) heldState() unsafe.Pointer {
	if len(r.name) == 0 {
		return nil
	}
	last := r.held(string(r.namespace), string(r.name))
	if reflect.TypeOf(last) != r.decoder.pointerType {
		return nil
	}
	return shape.Boxed(last)
}

func (d *Decoder) version(state unsafe.Pointer) string {
	return (*metav1.ObjectMeta)(unsafe.Add(state, d.meta)).ResourceVersion
}

// salt tells a state from every other remembered one. Two successive states at the
// same address have different versions, unless a server went back in time; then the
// hashes of the first are replaced: see note.
func (r *reader) salt(state unsafe.Pointer) uint64 {
	return maphash.String(r.pool.Seed, r.decoder.version(state)) + uint64(uintptr(state))*0x9E3779B97F4A7C15
}

// note remembers the hashes of the state at base, in place of those of the state
// before. If an object was listed again unchanged, the old hashes stay, because the
// caller keeps the old object.
func (r *reader) note(base unsafe.Pointer) {
	p := &r.decoder.lastStates
	if r.event == Standalone {
		return
	}
	noted := r.now.n > 1 || r.now.n == 1 && r.now.hashes[0] != 0
	if r.event == Deleted || !noted || r.decoder.version(base) == "" {
		p.forget(r.uid)
		return
	}
	hash := r.now.hashes[0]
	r.now.applySalt(r.salt(base))
	if p.note(r.uid, &r.now, r.event == Added) {
		return
	}
	if held := r.heldState(); held == nil || r.decoder.version(held) != r.decoder.version(base) || !r.noted(held, hash) {
		p.note(r.uid, &r.now, false)
	}
}

// noted says whether the remembered state is this one, with this part.
func (r *reader) noted(state unsafe.Pointer, hash uint64) bool {
	r.decoder.lastStates.recall(r.uid, &r.before)
	r.before.applySalt(r.salt(state))
	return r.before.has(hash)
}

// enter opens the window of a field that is about to be decoded, and returns the
// window around it.
func (r *reader) enter(f *field, dst, base unsafe.Pointer, n int) window {
	outer := r.window
	if r.mayHaveLast {
		r.window = window{base: base, size: uintptr(f.elemSize) * uintptr(n), place: r.place(f, dst)}
		if last := outer.at(dst); last != nil {
			r.window.last = f.partAt(last, n).Ptr
		}
	}
	return outer
}

// at is the address in the last state of the field at dst.
func (w *window) at(dst unsafe.Pointer) unsafe.Pointer {
	offset := uintptr(dst) - uintptr(w.base)
	if w.last == nil || offset >= w.size {
		return nil
	}
	return unsafe.Add(w.last, offset)
}

// place is a number for where in the object a field is.
func (r *reader) place(f *field, dst unsafe.Pointer) uint64 {
	offset := uint64(uintptr(dst) - uintptr(r.window.base))
	return (r.window.place+offset)*0x9E3779B97F4A7C15 + f.salt
}

// hash hashes the bytes between i and end. It keeps the result, because the same bytes
// are looked for in the last state and then in the pool.
func (r *reader) hash(i, end int) uint64 {
	if r.hashed.i != i || r.hashed.end != end {
		r.hashed.i, r.hashed.end, r.hashed.hash = i, end, maphash.Bytes(r.pool.Seed, r.data[i:end])
	}
	return r.hashed.hash
}

// partAt is the memory of the part in a field, nil if it does not have n elements.
func (f *field) partAt(field unsafe.Pointer, n int) shape.Memory {
	if f.kind >= kindRuns && f.kind < kindTextMap {
		if s := (*shape.SliceHeader)(field); s.Len == n {
			return shape.Memory{Ptr: s.Ptr, N: n}
		}
		return shape.Memory{}
	}
	return shape.Memory{Ptr: *(*unsafe.Pointer)(field), N: n}
}

// unchanged says whether a field has the same bytes as in the last state, and
// returns the field's address there. A field that changes with every state is only
// compared now and then.
func (r *reader) unchanged(f *field, i, end int, dst unsafe.Pointer) (last unsafe.Pointer, ok bool) {
	if r.event == Standalone || r.uid == 0 || end-i < minTakeOver || uintptr(dst)-uintptr(r.window.base) >= r.window.size {
		return nil, false
	}
	h := &r.stats.inLastState[r.stats.index(f, end-i)]
	if !h.Try() {
		return nil, false
	}
	hash := r.hash(i, end) ^ r.place(f, dst)
	r.now.add(hash)
	if last = r.window.at(dst); last == nil {
		return nil, false
	}
	ok = r.before.has(hash) && !r.tooDeepHere(f, i, end)
	if ok || r.all || f.stable {
		h.Record(ok)
	}
	return last, ok
}

// takeOver takes a part over from the last state.
func (r *reader) takeOver(f *field, i, end, n int, dst unsafe.Pointer) (shape.Memory, bool) {
	if !r.mayHaveLast {
		return shape.Memory{}, false
	}
	last, ok := r.unchanged(f, i, end, dst)
	if !ok {
		return shape.Memory{}, false
	}
	x := f.partAt(last, n)
	if x.Ptr == nil {
		return shape.Memory{}, false
	}
	if r.verify || r.admitting {
		x = r.verifiedPart(f, x, i, end, n)
	}
	return x, x.Ptr != nil
}

// inlineMessage decodes a message that lies in its parent's struct, or takes it over.
func (r *reader) inlineMessage(f *field, i, end int, dst unsafe.Pointer) bool {
	if !f.reusable || !r.mayHaveLast && (r.event != Added || !f.stable || r.now.n > 0) {
		return r.message(f.child(), i, end, dst)
	}
	noted, lazies := r.now.n, r.lazies
	if last, ok := r.unchanged(f, i, end, dst); ok {
		if r.verify {
			return r.verifiedMessage(f, last, i, end, dst)
		}
		reflect.NewAt(f.typ, dst).Elem().Set(reflect.NewAt(f.typ, last).Elem())
		return true
	}
	apart := end-i >= minOwnText
	var frame deferredFrame
	if apart {
		frame = r.texts.open()
	}
	if !r.message(f.child(), i, end, dst) {
		return false
	}
	if apart {
		r.closeFrame(frame)
	}
	if r.lazies != lazies {
		r.now.remove(noted)
	}
	return true
}
