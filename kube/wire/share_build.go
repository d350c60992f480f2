package wire

import (
	"maps"
	"reflect"
	"unsafe"
)

// block is memory that may have to be copied: a struct, or a slice's elements.
// It is, as a whole, when the first of its parts is replaced, unless it may be written
// to.
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

// result is the copy, or what was there if none was needed.
func (b *block) result() unsafe.Pointer {
	if b.dst != nil {
		return b.dst
	}
	return b.src
}

// build shares the parts of a value within a block. like is a value that may have
// the same parts, nil if there is none. cur is the node of the first part if it has
// been hashed; the one after the last is returned.
func (w *worker) build(b *block, off uintptr, p *plan, like unsafe.Pointer, cur, depth int) int {
	sites := w.known(p)
	for i := range p.steps {
		s := &p.steps[i]
		off := off + uintptr(s.off)
		at, like := unsafe.Add(b.src, off), like
		if s.kind == memoryStep || s.kind == lazyStep || isNil(at) {
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
				case own && w.offered == 0:
					w.texts = append(w.texts, ownText{off, text})
				}
			}
		case sliceStep:
			if x := *(*sliceHeader)(at); x.len > 0 {
				var y part
				y, cur = w.part(s, &sites[i], part{x.ptr, x.len}, *(*part)(like), x.cap, cur, depth)
				if y.ptr != x.ptr || x.cap != x.len {
					*(*sliceHeader)(b.at(off)) = sliceHeader{y.ptr, y.n, y.n}
				}
			}
		case pointerStep, mapStep:
			x := *(*unsafe.Pointer)(at)
			if s.scalar && b.dst != nil && w.offered == 0 {
				w.scalars.add((*unsafe.Pointer)(unsafe.Add(b.dst, off)), s.elem)
			}
			var y part
			y, cur = w.part(s, &sites[i], part{x, 1}, part{*(*unsafe.Pointer)(like), 1}, 1, cur, depth)
			if y.ptr != x {
				*(*unsafe.Pointer)(b.at(off)) = y.ptr
			}
		case ownListStep:
			if x := *(*sliceHeader)(at); x.len > 0 {
				if y := w.below(s, part{x.ptr, x.len}, part{}, x.cap, unhashed, depth); y.ptr != x.ptr || x.cap != x.len {
					*(*sliceHeader)(b.at(off)) = sliceHeader{y.ptr, y.n, y.n}
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

// nothing is what all fields are like when there is nothing to be like.
var nothing [3]unsafe.Pointer

// part shares what a slice, pointer or map leads to: all of it if like is the same
// or the pool has it, else what lies below. cur is its node if it has been hashed;
// the next one is returned.
func (w *worker) part(s *step, at *site, x, like part, room, cur, depth int) (part, int) {
	next := unhashed
	if cur != unhashed {
		next = int(w.nodes[cur].next)
	}
	if w.left--; w.left < 0 || depth >= maxDepth {
		return x, next
	}
	if like.ptr != nil && like.n == x.n && w.equalPart(s, x.ptr, like.ptr, x.n, depth) {
		return like, next
	}
	if s.scalar || s.bytes(x.n) < worthSharing || at.asleep() {
		if cur != unhashed {
			cur++
		}
		return w.below(s, x, like, room, cur, depth), next
	}
	last := at.next(w.epoch)
	if last.ptr != nil && last.n == x.n && last.ptr != like.ptr && w.equalPart(s, x.ptr, last.ptr, x.n, depth) {
		at.hit()
		return *last, next
	}
	if cur != unhashed {
		return w.lookUp(s, at, last, x, like, room, cur, depth), next
	}
	mark := len(w.nodes)
	w.hashPart(s, x.ptr, x.n, depth)
	y := w.lookUp(s, at, last, x, like, room, mark, depth)
	w.forget(mark)
	return y, next
}

// lookUp shares a part that has been hashed.
func (w *worker) lookUp(s *step, at *site, last *part, x, like part, room, cur, depth int) part {
	n := w.nodes[cur]
	if n.cut {
		return x
	}
	if n.opaque {
		return w.below(s, x, like, room, cur+1, depth)
	}
	if y, ok := w.find(s, n.hash, x); ok {
		at.hit()
		*last = y // which the pool knows to be shared
		return y
	}
	at.miss()
	*last = part{}
	w.offered++
	made := w.below(s, x, like, room, cur+1, depth)
	w.offered--
	return w.offer(s, n.hash, made, s.bytes(x.n))
}

func (s *step) bytes(n int) uintptr {
	if s.elem == nil {
		return mapBytes
	}
	return s.elem.size * uintptr(n)
}

const (
	// mapBytes is what a small map takes.
	mapBytes = 336
	// worthwhile is how much unused room makes a slice be copied.
	worthwhile = 64
)

// below shares the parts of a part.
func (w *worker) below(s *step, x, like part, room, cur, depth int) part {
	if s.kind == mapStep || s.elem.opaque {
		return x
	}
	b := w.block(x.ptr, s.elem, x.n)
	if s.kind == sliceStep || s.kind == ownListStep {
		b.slice = s
	}
	if !s.elem.leaf {
		mark := len(w.texts)
		for i := range x.n {
			off, like := uintptr(i)*s.elem.size, like
			if i < like.n && like.ptr != nil {
				like.ptr = unsafe.Add(like.ptr, off)
			} else {
				like.ptr = nil
			}
			cur = w.build(&b, off, s.elem, like.ptr, cur, depth+1)
		}
		w.gather(&b, mark)
	}
	if (b.dst == nil || b.dst == b.src) && uintptr(room-x.n)*s.elem.size >= worthwhile {
		b.copy()
	}
	return part{b.result(), x.n}
}

// textStep stands for all strings.
var textStep = &step{reference: &reference{seed: salted(1 << 32)}}

// text shares a string, or says that it is the object's own.
func (w *worker) text(at *site, text, like string) (shared string, ok, own bool) {
	x := part{unsafe.Pointer(unsafe.StringData(text)), len(text)}
	if like == text {
		return like, unsafe.Pointer(unsafe.StringData(like)) != x.ptr, false
	}
	if at.asleep() {
		return text, false, true
	}
	last := at.next(w.epoch)
	if last.n == x.n && unsafe.String((*byte)(last.ptr), last.n) == text {
		at.hit()
		return unsafe.String((*byte)(last.ptr), last.n), last.ptr != x.ptr, false
	}
	hash := hashString(text)
	y, ok := w.find(textStep, hash, x)
	if ok {
		at.hit()
	} else {
		at.miss()
		y = w.offer(textStep, hash, x, uintptr(x.n))
	}
	*last = y
	return unsafe.String((*byte)(y.ptr), y.n), y.ptr != x.ptr, false
}

// privateMap makes a map of the same strings.
//
// The map of the object before is not touched, since somebody may write to it; a
// copy is kept that nobody has, and copied again for each object that has the
// same labels.
func (w *worker) privateMap(m map[string]string, at *site, where uint64) (map[string]string, bool) {
	if len(m) == 0 || at.asleep() {
		return nil, false
	}
	last := at.next(w.epoch)
	kept := *(*map[string]string)(unsafe.Pointer(&last.ptr))
	if len(kept) == len(m) && maps.Equal(kept, m) {
		at.hit()
		return maps.Clone(kept), true
	}
	at.miss()
	kept = make(map[string]string, len(m))
	for k, v := range m {
		value := w.wordSite(below(where, k))
		k, _, _ = w.text(w.wordSite(where), k, "")
		v, _, _ = w.text(value, v, "")
		kept[k] = v
	}
	*last = part{*(*unsafe.Pointer)(unsafe.Pointer(&kept)), 1}
	return maps.Clone(kept), true
}
