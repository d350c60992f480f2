package json

import (
	"reflect"
	"unsafe"
)

// structure decodes the object at i into a struct.
func (s *reader) structure(p *plan, dst unsafe.Pointer, i int) int {
	if s.data[i] != '{' || s.depth >= maxDepth {
		return irregular
	}
	fields := p.structFields()
	if i = skipSpace(s.data, i+1); i == irregular {
		return irregular
	}
	if s.data[i] == '}' {
		return i + 1
	}
	if fields.irregular {
		return irregular
	}
	s.depth++
	defer func() { s.depth-- }()
	var read [maxFields / 64]uint64
	last := fields.start
	for {
		var f *fieldPlan
		if f, i = s.field(fields, last, i); i == irregular {
			return irregular
		}
		if f == nil {
			i = skipValue(s.data, i, s.depth)
		} else {
			set, bit := &read[f.bit/64], uint64(1)<<(f.bit%64)
			if *set&bit != 0 {
				return irregular // the stock decoder merges the two
			}
			*set |= bit
			last = f.id
			i = s.value(f.plan, f.in(dst), i, uint(f.id))
		}
		if i == irregular {
			return irregular
		}
		var more bool
		if i, more = s.next(i, '}'); !more {
			return i
		}
	}
}

// next returns the position of the next member after one that ended at i, or the one
// after the container.
func (s *reader) next(i int, last byte) (_ int, more bool) {
	if i = skipSpace(s.data, i); i == irregular {
		return irregular, false
	}
	switch s.data[i] {
	case ',':
		i = skipSpace(s.data, i+1)
		return i, i != irregular
	case last:
		return i + 1, false
	}
	return irregular, false
}

// field finds the field named at i; nil if the struct has none of that name.
func (s *reader) field(fields *fieldTable, last, i int) (*fieldPlan, int) {
	if last < len(s.follows) {
		if f := s.follows[last]; f != nil {
			if end := matchWord(s.data, i, f.lead); end != irregular {
				return f, end
			}
		}
	}
	name, i := s.text(i)
	if i == irregular {
		return nil, irregular
	}
	f := fields.byName[string(name)]
	if i = skipSpace(s.data, i); i == irregular || s.data[i] != ':' {
		return nil, irregular
	}
	if f != nil {
		for last >= len(s.follows) {
			s.follows = append(s.follows, nil)
		}
		s.follows[last] = f
	}
	return f, i + 1
}

// in returns the field's place in the struct at dst.
func (f *fieldPlan) in(dst unsafe.Pointer) unsafe.Pointer {
	for _, hop := range f.hops {
		at := (*unsafe.Pointer)(unsafe.Add(dst, hop.offset))
		if *at == nil {
			*at = reflect.New(hop.typ).UnsafePointer()
		}
		dst = *at
	}
	return unsafe.Add(dst, f.offset)
}
