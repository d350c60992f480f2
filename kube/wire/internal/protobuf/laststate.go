package protobuf

import (
	"hash/maphash"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// minTakeOver is how much a part must be made of to be compared with the past, and
// minOwnText to get text of its own when it is to be taken over: else an object's
// next states would keep all of its text for the sake of some.
const (
	minTakeOver = 64
	minOwnText  = 128
)

// lastState is what a reader knows of the object at hand in its last state.
type lastState struct {
	event Event
	held  Held
	// mayHaveLast says that there may be a last state, verify that what is taken over from it
	// is to be verified.
	mayHaveLast, verify bool
	// readAt is when the object was read.
	readAt pool.Seconds
	// name and namespace are where they are in the bytes, uid is the hash of what
	// identifies the object, 0 until that was read.
	name, namespace []byte
	uid             uint64
	// before are the parts that the last state had, now those of this one. all says
	// that of the last one more than one part was noted.
	before, now partHashes
	all         bool
	window      window
	hashed      struct {
		i, end int
		hash   uint64
	}
}

// window is the memory being decoded into, and the same memory of the last state,
// nil if there is none. The place tells it from other windows of the object.
type window struct {
	base, last unsafe.Pointer
	size       uintptr
	place      uint64
}

// begin is for a new object at base.
func (l *lastState) begin(base unsafe.Pointer, size uintptr, m Event, held Held) {
	l.event, l.held, l.mayHaveLast, l.uid = m, held, m >= Modified, 0
	l.verify, l.readAt = false, pool.Now()
	l.before.n, l.now.n, l.now.checked = 0, 0, l.readAt
	l.hashed.end = 0
	l.window = window{base: base, size: size}
}

// leave lets go of an object, of what is held of it, and of its bytes.
func (l *lastState) leave() {
	l.held, l.name, l.namespace, l.window = nil, nil, nil, window{}
}

// identify notes which object it is. With the uid, which comes after the name in what
// servers write, its last state is looked for.
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

// recall finds the last state, and what it was made of.
func (r *reader) recall() {
	past := r.heldState()
	if past == nil {
		return
	}
	if r.all = r.decoder.lastStates.recall(r.uid, &r.before); r.before.n > 0 {
		r.before.applySalt(r.salt(past))
		r.window.last = past
		if r.verify = r.before.checked.Due(r.readAt); !r.verify {
			r.now.checked = r.before.checked
		}
	}
}

// heldState is what is held of the object, nil if that is nothing of its type.
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

// salt tells a state from every other one that is noted. One that is gone may have lain
// where another does now, but not in the same version, unless a server went back in
// time; and then what was noted of it is gone as well: see note.
func (r *reader) salt(state unsafe.Pointer) uint64 {
	return maphash.String(r.pool.Seed, r.decoder.version(state)) + uint64(uintptr(state))*0x9E3779B97F4A7C15
}

// note remembers what the object at base was made of, if it is held, in place of what
// was noted of any state before. Only if it was listed again as it was does the note
// stay: so does the object that is held.
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

// noted says whether it is this state that is remembered, with this part.
func (r *reader) noted(state unsafe.Pointer, hash uint64) bool {
	r.decoder.lastStates.recall(r.uid, &r.before)
	r.before.applySalt(r.salt(state))
	return r.before.has(hash)
}

// enter makes what is about to be decoded for a field the window, and returns the one
// that was.
func (r *reader) enter(f *field, dst, base unsafe.Pointer, n int) window {
	outer := r.window
	if r.mayHaveLast {
		r.window = window{base: base, size: uintptr(f.elemSize) * uintptr(n), place: r.place(f, dst)}
		if past := outer.at(dst); past != nil {
			r.window.last = f.partAt(past, n).Ptr
		}
	}
	return outer
}

// at is where in the last state a field at dst is.
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

// hash is that of the bytes between i and end. It is asked for the same bytes twice in
// a row: by who looks in the last state, then by who looks in the pool.
func (r *reader) hash(i, end int) uint64 {
	if r.hashed.i != i || r.hashed.end != end {
		r.hashed.i, r.hashed.end, r.hashed.hash = i, end, maphash.Bytes(r.pool.Seed, r.data[i:end])
	}
	return r.hashed.hash
}

// partAt is the part that a field has, nil if it has not n elements.
func (f *field) partAt(field unsafe.Pointer, n int) shape.Memory {
	if f.kind >= kindRuns && f.kind < kindTextMap {
		if s := (*shape.SliceHeader)(field); s.Len == n {
			return shape.Memory{Ptr: s.Ptr, N: n}
		}
		return shape.Memory{}
	}
	return shape.Memory{Ptr: *(*unsafe.Pointer)(field), N: n}
}

// unchanged says whether a field's bytes are those of the last state, and where that
// has the field. What changes with every state is not compared each time.
func (r *reader) unchanged(f *field, i, end int, dst unsafe.Pointer) (past unsafe.Pointer, ok bool) {
	if r.event == Standalone || r.uid == 0 || end-i < minTakeOver || uintptr(dst)-uintptr(r.window.base) >= r.window.size {
		return nil, false
	}
	h := &r.stats.inLastState[r.stats.index(f, end-i)]
	if !h.Try() {
		return nil, false
	}
	hash := r.hash(i, end) ^ r.place(f, dst)
	r.now.add(hash)
	if past = r.window.at(dst); past == nil {
		return nil, false
	}
	ok = r.before.has(hash) && !r.tooDeepHere(f, i, end)
	if ok || r.all || f.stable {
		h.Record(ok)
	}
	return past, ok
}

// takeOver takes a part over from the last state.
func (r *reader) takeOver(f *field, i, end, n int, dst unsafe.Pointer) (shape.Memory, bool) {
	if !r.mayHaveLast {
		return shape.Memory{}, false
	}
	past, ok := r.unchanged(f, i, end, dst)
	if !ok {
		return shape.Memory{}, false
	}
	x := f.partAt(past, n)
	if x.Ptr == nil {
		return shape.Memory{}, false
	}
	if r.verify || r.admitting {
		x = r.verifiedPart(f, x, i, end, n)
	}
	return x, x.Ptr != nil
}

// inlineMessage decodes a message that is part of its struct, or takes it over.
func (r *reader) inlineMessage(f *field, i, end int, dst unsafe.Pointer) bool {
	if !f.reusable || !r.mayHaveLast && (r.event != Added || !f.stable || r.now.n > 0) {
		return r.message(f.child(), i, end, dst)
	}
	noted, lazies := r.now.n, r.lazies
	if past, ok := r.unchanged(f, i, end, dst); ok {
		if r.verify {
			return r.verifiedMessage(f, past, i, end, dst)
		}
		reflect.NewAt(f.typ, dst).Elem().Set(reflect.NewAt(f.typ, past).Elem())
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
