package json

import (
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// slice decodes the array at i. It allocates as many elements as the last slice
// at this site had, at most 32, and copies if the real length differs.
func (s *reader) slice(p *plan, dst unsafe.Pointer, i int, site uint) int {
	if s.data[i] != '[' || s.depth >= maxDepth {
		return irregular
	}
	if i = skipSpace(s.data, i+1); i == irregular {
		return irregular
	}
	if s.data[i] == ']' {
		*(*shape.SliceHeader)(dst) = shape.SliceHeader{Ptr: reflect.MakeSlice(p.typ, 0, 0).UnsafePointer()}
		return i + 1
	}
	s.depth++
	defer func() { s.depth-- }()
	at := s.site(site)
	room := max(1, int(at.length))
	memory := reflect.MakeSlice(p.typ, room, room)
	n := 0
	for more := true; more; n++ {
		if n == room {
			room *= 2
			memory = resized(memory, room)
		}
		if i = s.value(p.elem, unsafe.Add(memory.UnsafePointer(), n*p.elem.size), i, site+1); i == irregular {
			return irregular
		}
		if i, more = s.next(i, ']'); i == irregular {
			return irregular
		}
	}
	if n < room {
		memory = resized(memory, n)
	}
	at.length = uint8(min(n, 32))
	*(*shape.SliceHeader)(dst) = shape.SliceHeader{Ptr: memory.UnsafePointer(), Len: n, Cap: n}
	return i
}

func resized(memory reflect.Value, n int) reflect.Value {
	other := reflect.MakeSlice(memory.Type(), n, n)
	reflect.Copy(other, memory)
	return other
}

// pair is an entry of a map of strings.
type pair struct{ key, value string }

// textMap decodes the object at i into a map[string]string, or a type made of it.
func (s *reader) textMap(dst unsafe.Pointer, i int) int {
	s.pairs = s.pairs[:0]
	i = s.entries(i, func(key []byte, i int) int {
		pair := pair{key: s.texts.string(key)}
		if i = skipSpace(s.data, i); i == irregular {
			return irregular
		}
		if s.data[i] == 'n' {
			i = matchWord(s.data, i, "null")
		} else {
			var b []byte
			b, i = s.text(i)
			pair.value = s.texts.string(b)
		}
		s.pairs = append(s.pairs, pair)
		return i
	})
	if i == irregular {
		return irregular
	}
	m := make(map[string]string, len(s.pairs))
	for _, pair := range s.pairs {
		m[pair.key] = pair.value
	}
	if len(m) < len(s.pairs) {
		return irregular
	}
	clear(s.pairs)
	*(*map[string]string)(dst) = m
	return i
}

// anyMap decodes the object at i into a map from strings to what p says.
func (s *reader) anyMap(p *plan, dst unsafe.Pointer, i int, site uint) int {
	m := reflect.MakeMap(p.typ)
	key := reflect.New(p.typ.Key()).Elem()
	n, lazies := 0, s.lazies
	i = s.entries(i, func(name []byte, i int) int {
		key.SetString(s.texts.string(name))
		value := reflect.New(p.elem.typ)
		i = s.value(p.elem, value.UnsafePointer(), i, site+1)
		if i != irregular {
			m.SetMapIndex(key, value.Elem())
			n++
		}
		return i
	})
	if i == irregular || m.Len() < n {
		return irregular
	}
	if p.elem.kind == quantityKind {
		s.lazies = lazies
	}
	*(*unsafe.Pointer)(dst) = m.UnsafePointer()
	return i
}

// entries reads the object at i, each key with the position after its colon.
func (s *reader) entries(i int, each func(key []byte, i int) int) int {
	if s.data[i] != '{' || s.depth >= maxDepth {
		return irregular
	}
	if i = skipSpace(s.data, i+1); i == irregular {
		return irregular
	}
	if s.data[i] == '}' {
		return i + 1
	}
	s.depth++
	defer func() { s.depth-- }()
	for more := true; more; {
		key, at := s.text(i)
		if at == irregular {
			return irregular
		}
		if at = skipSpace(s.data, at); at == irregular || s.data[at] != ':' {
			return irregular
		}
		if i = each(key, at+1); i == irregular {
			return irregular
		}
		if i, more = s.next(i, '}'); i == irregular {
			return irregular
		}
	}
	return i
}
