package wire

import (
	"reflect"
	"unsafe"
)

// structure decodes the object at i into a struct.
func (s *jsonState) structure(p *jsonPlan, dst unsafe.Pointer, i int) int {
	if s.data[i] != '{' || s.depth >= deepest {
		return odd
	}
	fields := p.structFields()
	if i = jsonSpace(s.data, i+1); i == odd {
		return odd
	}
	if s.data[i] == '}' {
		return i + 1
	}
	if fields.odd {
		return odd
	}
	s.depth++
	defer func() { s.depth-- }()
	var met [jsonMaxFields / 64]uint64
	last := fields.start
	for {
		var f *fieldPlan
		if f, i = s.field(fields, last, i); i == odd {
			return odd
		}
		if f == nil {
			i = jsonSkip(s.data, i, s.depth)
		} else {
			set, bit := &met[f.bit/64], uint64(1)<<(f.bit%64)
			if *set&bit != 0 {
				return odd // the stock decoder merges the two
			}
			*set |= bit
			last = f.id
			i = s.value(f.plan, f.in(dst), i, uint(f.id))
		}
		if i == odd {
			return odd
		}
		var more bool
		if i, more = s.next(i, '}'); !more {
			return i
		}
	}
}

// next returns the position of the next member after one that ended at i, or the one
// after the container.
func (s *jsonState) next(i int, last byte) (_ int, more bool) {
	if i = jsonSpace(s.data, i); i == odd {
		return odd, false
	}
	switch s.data[i] {
	case ',':
		i = jsonSpace(s.data, i+1)
		return i, i != odd
	case last:
		return i + 1, false
	}
	return odd, false
}

// field finds the field named at i; nil if the struct has none of that name.
func (s *jsonState) field(fields *jsonFields, last, i int) (*fieldPlan, int) {
	if last < len(s.follows) {
		if f := s.follows[last]; f != nil {
			if end := jsonWord(s.data, i, f.lead); end != odd {
				return f, end
			}
		}
	}
	name, i := s.text(i)
	if i == odd {
		return nil, odd
	}
	f := fields.byName[string(name)]
	if i = jsonSpace(s.data, i); i == odd || s.data[i] != ':' {
		return nil, odd
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
