package json

import (
	"hash/maphash"
	"strconv"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// member is a member of an object, or an element of an array, which has no key.
type member struct {
	key   string
	value any
}

var (
	untypedMapPlan = &plan{kind: untypedMapKind, typ: shape.UntypedMapType}
	// Arrays are shared with their headers, because an interface points to the
	// header.
	untypedListPlan = &plan{kind: untypedListKind, typ: shape.UntypedListType}
)

// any decodes the value at i into what the stock decoder puts into an interface: the
// elements of JSON as Go has them, integers as int64. What has a scope is not shared.
func (s *reader) any(i int, in *scope, site uint) (any, int) {
	if i = skipSpace(s.data, i); i == irregular {
		return nil, irregular
	}
	switch s.data[i] {
	case '"':
		b, end := s.text(i)
		if end == irregular {
			return nil, irregular
		}
		return s.texts.box(b), end
	case '{':
		at := &s.slots[s.depth]
		if in != nil || s.pool == nil {
			i = s.untypedMap(in, unsafe.Pointer(at), i)
		} else {
			i = s.part(untypedMapPlan, unsafe.Pointer(at), i, site)
		}
		m := *(*map[string]any)(unsafe.Pointer(at))
		*at = nil
		return m, i
	case '[':
		at := &s.slots[s.depth]
		if in != nil || s.pool == nil {
			i = s.untypedList(in, unsafe.Pointer(at), i, site)
		} else {
			i = s.part(untypedListPlan, unsafe.Pointer(at), i, site)
		}
		if i == irregular {
			return nil, irregular
		}
		a := (*[]any)(*at)
		*at = nil
		return boxSlice(a), i
	case 't':
		return true, matchWord(s.data, i, "true")
	case 'f':
		return false, matchWord(s.data, i, "false")
	case 'n':
		return nil, matchWord(s.data, i, "null")
	default:
		return s.anyNumber(i)
	}
}

func (s *reader) anyNumber(i int) (any, int) {
	end, integer := scanNumber(s.data, i)
	if end == irregular {
		return nil, irregular
	}
	text := unsafe.String(&s.data[i], end-i)
	if integer {
		if n, ok := smallInt(text); ok {
			return n, end
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, end
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, irregular
	}
	return f, end
}

// untypedMap decodes the object at i into a map[string]any, or a type made of it.
func (s *reader) untypedMap(in *scope, dst unsafe.Pointer, i int) int {
	from := len(s.members)
	i = s.entries(i, func(key []byte, i int) int {
		within := in.in(string(key))
		if within != nil && within.drop {
			return skipValue(s.data, i, s.depth)
		}
		name := s.texts.string(key)
		value, i := s.any(i, within, uint(maphash.String(s.texts.seed, name)))
		s.members = append(s.members, member{name, value})
		return i
	})
	members := s.members[from:]
	s.members = s.members[:from]
	defer clear(members)
	if i == irregular {
		return irregular
	}
	m := make(map[string]any, len(members))
	for _, member := range members {
		m[member.key] = member.value
	}
	if len(m) < len(members) {
		return irregular
	}
	*(*map[string]any)(dst) = m
	return i
}

// untypedList decodes the array at i into a *[]any. Its elements have its scope.
func (s *reader) untypedList(in *scope, dst unsafe.Pointer, i int, site uint) int {
	if i = skipSpace(s.data, i+1); i == irregular || s.depth >= maxDepth {
		return irregular
	}
	if s.data[i] == ']' {
		*(**[]any)(dst) = &[]any{}
		return i + 1
	}
	s.depth++
	defer func() { s.depth-- }()
	from := len(s.members)
	for more := true; more && i != irregular; {
		var value any
		if value, i = s.any(i, in, site+1); i != irregular {
			s.members = append(s.members, member{value: value})
			i, more = s.next(i, ']')
		}
	}
	members := s.members[from:]
	s.members = s.members[:from]
	defer clear(members)
	if i == irregular {
		return irregular
	}
	a := make([]any, len(members))
	for n := range a {
		a[n] = members[n].value
	}
	*(**[]any)(dst) = &a
	return i
}
