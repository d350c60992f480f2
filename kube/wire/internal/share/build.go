package share

import (
	"maps"
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// block is memory that may have to be copied: a struct, or a slice's elements.
// It is copied as a whole when the first of its parts is replaced, unless it
// may be written to.
type block struct {
	w        *worker
	src, dst unsafe.Pointer
	of       *plan
	n        int
	slice    *step // nil for a struct
}

func (w *worker) block(src unsafe.Pointer, of *plan, n int) block {
	b := block{w: w, src: src, of: of, n: n}
	if w.inPlace {
		b.dst = src
	}
	return b
}

// at is where to write what belongs at off.
func (b *block) at(off uintptr) unsafe.Pointer {
	if b.dst == nil {
		b.copy()
	}
	return unsafe.Add(b.dst, off)
}

func (b *block) copy() {
	if b.slice == nil {
		fresh := reflect.New(b.of.t)
		fresh.Elem().Set(reflect.NewAt(b.of.t, b.src).Elem())
		b.dst = fresh.UnsafePointer()
		return
	}
	b.dst = b.w.copier(b.slice).copy(b.src, b.n)
}

// result is the copy, or the original if no copy was needed.
func (b *block) result() unsafe.Pointer {
	if b.dst != nil {
		return b.dst
	}
	return b.src
}

// build shares the parts of a value within a block. like is a value that may
// have the same parts, or nil. cur is the node of the first part if it has been
// hashed. build returns the node after the last one.
func (w *worker) build(b *block, off uintptr, p *plan, like unsafe.Pointer, cur, depth int) int {
	sites := w.known(p)
	for i := range p.steps {
		s := &p.steps[i]
		off := off + uintptr(s.off)
		at, like := unsafe.Add(b.src, off), like
		if s.kind == memoryStep || s.kind == lazyStep || shape.IsNil(at) {
			continue
		}
		if like == nil {
			like = unsafe.Pointer(&nothing)
		} else {
			like = unsafe.Add(like, s.off)
		}
		switch s.kind {
		case stringStep:
			if text := *(*string)(at); text != "" {
				shared, ok, own := w.text(&sites[i], text, *(*string)(like))
				switch {
				case ok:
					*(*string)(b.at(off)) = shared
				case own:
					w.texts = append(w.texts, ownText{off, text})
				}
			}
		case sliceStep:
			if x := *(*shape.SliceHeader)(at); x.Len > 0 {
				var y shape.Memory
				y, cur = w.part(s, &sites[i], shape.Memory{Ptr: x.Ptr, N: x.Len}, *(*shape.Memory)(like), x.Cap, cur, depth)
				if y.Ptr != x.Ptr || x.Cap != x.Len {
					*(*shape.SliceHeader)(b.at(off)) = shape.SliceHeader{Ptr: y.Ptr, Len: y.N, Cap: y.N}
				}
			}
		case pointerStep, mapStep:
			x := *(*unsafe.Pointer)(at)
			if s.scalar && b.dst != nil && w.offered == 0 && w.scalars.add((*unsafe.Pointer)(unsafe.Add(b.dst, off)), s.elem) {
				// It will be gathered with the object's other scalars. So it is not compared with
				// that of the last state, which would have to be fetched from memory.
				if cur != unhashed {
					cur = int(w.nodes[cur].next)
				}
				continue
			}
			var y shape.Memory
			y, cur = w.part(s, &sites[i], shape.Memory{Ptr: x, N: 1}, shape.Memory{Ptr: *(*unsafe.Pointer)(like), N: 1}, 1, cur, depth)
			if y.Ptr != x {
				*(*unsafe.Pointer)(b.at(off)) = y.Ptr
			}
		case ownListStep:
			if x := *(*shape.SliceHeader)(at); x.Len > 0 {
				if y := w.below(s, shape.Memory{Ptr: x.Ptr, N: x.Len}, shape.Memory{}, x.Cap, unhashed, depth); y.Ptr != x.Ptr || x.Cap != x.Len {
					*(*shape.SliceHeader)(b.at(off)) = shape.SliceHeader{Ptr: y.Ptr, Len: y.N, Cap: y.N}
				}
			}
		case privateStep:
			if m, changed := w.privateMap(*(*map[string]string)(at), &sites[i], p.where(i)); changed {
				*(*map[string]string)(b.at(off)) = m
			}
		case treeStep:
			var v any
			var changed bool
			if v, cur, changed = w.tree(*(*map[string]any)(at), *(*map[string]any)(like), p.where(i), cur, depth); changed {
				*(*map[string]any)(b.at(off)) = v.(map[string]any)
			}
		case jsonStep:
			var v any
			var changed bool
			if v, cur, changed = w.tree(*(*any)(at), *(*any)(like), p.where(i), cur, depth); changed {
				*(*any)(b.at(off)) = v
			}
		}
	}
	return cur
}

// nothing stands for the fields of like when there is no like.
var nothing [3]unsafe.Pointer

// part shares what a slice, pointer or map leads to: all of it if like is the
// same or the pool has it, else what lies below. cur is its node if it has been
// hashed. part returns the next node.
func (w *worker) part(s *step, at *site, x, like shape.Memory, room, cur, depth int) (shape.Memory, int) {
	next := unhashed
	if cur != unhashed {
		next = int(w.nodes[cur].next)
	}
	if w.left--; w.left < 0 || depth >= maxDepth {
		return x, next
	}
	if like.Ptr != nil && like.N == x.N && w.equalPart(s, x.Ptr, like.Ptr, x.N, depth) {
		return like, next
	}
	if s.scalar || s.bytes(x.N) < pool.MinSize || at.skips() {
		if cur != unhashed {
			cur++
		}
		return w.below(s, x, like, room, cur, depth), next
	}
	last := at.next(w.epoch)
	if last.Ptr != nil && last.N == x.N && last.Ptr != like.Ptr && w.equalPart(s, x.Ptr, last.Ptr, x.N, depth) {
		at.hit()
		return *last, next
	}
	if cur != unhashed {
		return w.lookUp(s, at, last, x, like, room, cur, depth), next
	}
	mark := len(w.nodes)
	w.hashPart(s, x.Ptr, x.N, depth)
	y := w.lookUp(s, at, last, x, like, room, mark, depth)
	w.forget(mark)
	return y, next
}

// lookUp shares a part that has been hashed.
func (w *worker) lookUp(s *step, at *site, last *shape.Memory, x, like shape.Memory, room, cur, depth int) shape.Memory {
	n := w.nodes[cur]
	if n.cut {
		return x
	}
	if n.opaque {
		return w.below(s, x, like, room, cur+1, depth)
	}
	if y, ok := w.find(s, n.hash, x); ok {
		at.hit()
		*last = y // the pool knows that it is shared
		return y
	}
	at.miss()
	*last = shape.Memory{}
	w.offered++
	var made shape.Memory
	if w.inPlace {
		made = w.below(s, x, like, room, cur+1, depth)
	} else {
		made = w.ownPart(s, x, cur+1, depth)
	}
	w.offered--
	return w.offer(s, n.hash, made, s.bytes(x.N))
}

func (s *step) bytes(n int) uintptr {
	if s.elem == nil {
		return mapBytes
	}
	return s.elem.size * uintptr(n)
}

const (
	// mapBytes is the size of a small map.
	mapBytes = 336
	// minSlack is the unused capacity from which on a slice is copied.
	minSlack = 64
)

// below shares the parts of a part.
func (w *worker) below(s *step, x, like shape.Memory, room, cur, depth int) shape.Memory {
	if s.kind == mapStep || s.elem.opaque {
		return x
	}
	b := w.block(x.Ptr, s.elem, x.N)
	if s.kind == sliceStep || s.kind == ownListStep {
		b.slice = s
	}
	slack := uintptr(room-x.N)*s.elem.size >= minSlack
	if slack && b.dst != nil {
		b.copy() // first, because gathered texts and scalars are written to the copy
	}
	if !s.elem.leaf {
		mark := len(w.texts)
		for i := range x.N {
			off, like := uintptr(i)*s.elem.size, like
			if i < like.N && like.Ptr != nil {
				like.Ptr = unsafe.Add(like.Ptr, off)
			} else {
				like.Ptr = nil
			}
			cur = w.build(&b, off, s.elem, like.Ptr, cur, depth+1)
		}
		w.gather(&b, mark)
	}
	if slack && b.dst == nil {
		b.copy()
	}
	return shape.Memory{Ptr: b.result(), N: x.N}
}

// textStep is the step of every string.
var textStep = &step{reference: &reference{seed: salted(1 << 32)}}

// text shares a string, or reports that it is in no other object. In a part that is offered
// to the pool, that is every short text that was not found: it is gathered with the part's
// other texts, and the original stays in the table of recent parts.
func (w *worker) text(at *site, text, like string) (shared string, ok, own bool) {
	x := shape.Memory{Ptr: unsafe.Pointer(unsafe.StringData(text)), N: len(text)}
	if like == text {
		return like, unsafe.Pointer(unsafe.StringData(like)) != x.Ptr, false
	}
	if at.skips() {
		return text, false, true
	}
	last := at.next(w.epoch)
	if last.N == x.N && unsafe.String((*byte)(last.Ptr), last.N) == text {
		at.hit()
		return unsafe.String((*byte)(last.Ptr), last.N), last.Ptr != x.Ptr, false
	}
	hash := hashString(text)
	y, found := w.find(textStep, hash, x)
	if found {
		at.hit()
	} else {
		at.miss()
		y = w.offer(textStep, hash, x, uintptr(x.N))
	}
	*last = y
	if !found && w.offered > 0 && x.N < minPooledText {
		return text, false, true
	}
	return unsafe.String((*byte)(y.Ptr), y.N), y.Ptr != x.Ptr, false
}

// privateMap makes a map of the same strings.
//
// It does not touch the map of the object before, because somebody may write to
// it. It keeps a copy that nobody else has, and copies that for each object
// with the same labels.
func (w *worker) privateMap(m map[string]string, at *site, where uint64) (map[string]string, bool) {
	if len(m) == 0 {
		return nil, false
	}
	if at.skips() {
		if w.inPlace {
			w.gatherMap(m)
		}
		return nil, false
	}
	last := at.next(w.epoch)
	kept := *(*map[string]string)(unsafe.Pointer(&last.Ptr))
	if len(kept) == len(m) && maps.Equal(kept, m) {
		at.hit()
		return maps.Clone(kept), true
	}
	at.miss()
	kept = make(map[string]string, len(m))
	for k, v := range m {
		value := w.textSite(below(where, k))
		k, _, _ = w.text(w.textSite(where), k, "")
		v, _, _ = w.text(value, v, "")
		kept[k] = v
	}
	*last = shape.Memory{Ptr: *(*unsafe.Pointer)(unsafe.Pointer(&kept)), N: 1}
	return maps.Clone(kept), true
}
