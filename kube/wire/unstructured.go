package wire

import (
	"hash/maphash"
	"strconv"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// jsonMember is a member of an object, or of an array, where it has no key.
type jsonMember struct {
	key   string
	value any
}

var (
	freeMapPlan = &jsonPlan{kind: freeMapKind, typ: shape.UntypedMapType}
	// Arrays are shared with their headers, for that is what an interface points to.
	freeSlicePlan = &jsonPlan{kind: freeSliceKind, typ: shape.UntypedListType}
)

// any decodes the value at i into what the stock decoder puts into an interface: the
// elements of JSON as Go has them, integers as int64. What has a scope is not shared.
func (s *jsonState) any(i int, in *jsonScope, site uint) (any, int) {
	if i = jsonSpace(s.data, i); i == odd {
		return nil, odd
	}
	switch s.data[i] {
	case '"':
		b, end := s.text(i)
		if end == odd {
			return nil, odd
		}
		return s.texts.box(b), end
	case '{':
		at := &s.slots[s.depth]
		if in != nil || s.pool == nil {
			i = s.freeMap(in, unsafe.Pointer(at), i)
		} else {
			i = s.part(freeMapPlan, unsafe.Pointer(at), i, site)
		}
		m := *(*map[string]any)(unsafe.Pointer(at))
		*at = nil
		return m, i
	case '[':
		at := &s.slots[s.depth]
		if in != nil || s.pool == nil {
			i = s.freeSlice(in, unsafe.Pointer(at), i, site)
		} else {
			i = s.part(freeSlicePlan, unsafe.Pointer(at), i, site)
		}
		if i == odd {
			return nil, odd
		}
		a := (*[]any)(*at)
		*at = nil
		return boxSlice(a), i
	case 't':
		return true, jsonWord(s.data, i, "true")
	case 'f':
		return false, jsonWord(s.data, i, "false")
	case 'n':
		return nil, jsonWord(s.data, i, "null")
	default:
		return s.anyNumber(i)
	}
}

func (s *jsonState) anyNumber(i int) (any, int) {
	end, integer := jsonNumber(s.data, i)
	if end == odd {
		return nil, odd
	}
	text := unsafe.String(&s.data[i], end-i)
	if integer {
		if n, ok := jsonSmallInt(text); ok {
			return n, end
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, end
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, odd
	}
	return f, end
}

// freeMap decodes the object at i into a map[string]any, or a type made of it.
func (s *jsonState) freeMap(in *jsonScope, dst unsafe.Pointer, i int) int {
	from := len(s.members)
	i = s.entries(i, func(key []byte, i int) int {
		within := in.in(string(key))
		if within != nil && within.drop {
			return jsonSkip(s.data, i, s.depth)
		}
		name := s.texts.string(key)
		value, i := s.any(i, within, uint(maphash.String(s.texts.seed, name)))
		s.members = append(s.members, jsonMember{name, value})
		return i
	})
	members := s.members[from:]
	s.members = s.members[:from]
	defer clear(members)
	if i == odd {
		return odd
	}
	m := make(map[string]any, len(members))
	for _, member := range members {
		m[member.key] = member.value
	}
	if len(m) < len(members) {
		return odd
	}
	*(*map[string]any)(dst) = m
	return i
}

// freeSlice decodes the array at i into a *[]any. Its elements have its scope.
func (s *jsonState) freeSlice(in *jsonScope, dst unsafe.Pointer, i int, site uint) int {
	if i = jsonSpace(s.data, i+1); i == odd || s.depth >= deepest {
		return odd
	}
	if s.data[i] == ']' {
		*(**[]any)(dst) = &[]any{}
		return i + 1
	}
	s.depth++
	defer func() { s.depth-- }()
	from := len(s.members)
	for more := true; more && i != odd; {
		var value any
		if value, i = s.any(i, in, site+1); i != odd {
			s.members = append(s.members, jsonMember{value: value})
			i, more = s.next(i, ']')
		}
	}
	members := s.members[from:]
	s.members = s.members[:from]
	defer clear(members)
	if i == odd {
		return odd
	}
	a := make([]any, len(members))
	for n := range a {
		a[n] = members[n].value
	}
	*(**[]any)(dst) = &a
	return i
}
