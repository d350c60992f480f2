package jsonout

import (
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// member is a field of a struct, or of one that is embedded in it.
type member struct {
	// head is the quoted name with its colon, and a comma before it.
	head   string
	offset uintptr
	// empty says how to see that the field is left out, at the offset emptyAt; most fields of
	// most objects are. left is asked where that is not enough; nil if it need not be.
	empty   omitCheck
	emptyAt uintptr
	left    func(at unsafe.Pointer) bool
	isText  bool
	encode  encoder
	name    string
}

// omitCheck is how to find out whether a field is left out.
type omitCheck uint8

const (
	never     omitCheck = iota // ask left, if that is set
	zeroWord                   // a pointer, or the length of a string or a list
	zeroHalf                   // an int32
	zeroByte                   // a bool
	nilOrLeft                  // a map: nil, or left says so
)

func structEncoder(t reflect.Type) encoder {
	members, ok := membersOf(t, 0)
	if !ok || repeated(members) {
		return stockEncoder(t)
	}
	return func(w *writer, buf []byte, at unsafe.Pointer) []byte {
		begin := len(buf)
		for i := range members {
			m := &members[i]
			if m.isLeft(at) {
				continue
			}
			buf = append(buf, m.head...)
			if field := unsafe.Add(at, m.offset); m.isText {
				buf = appendText(buf, *(*string)(field))
			} else {
				buf = m.encode(w, buf, field)
			}
		}
		if len(buf) == begin {
			return append(buf, "{}"...)
		}
		buf[begin] = '{' // instead of the first comma
		return append(buf, '}')
	}
}

// isLeft says whether the field is left out of the struct at an address.
func (m *member) isLeft(at unsafe.Pointer) bool {
	switch m.empty {
	case zeroWord:
		return *(*uintptr)(unsafe.Add(at, m.emptyAt)) == 0
	case zeroHalf:
		return *(*uint32)(unsafe.Add(at, m.emptyAt)) == 0
	case zeroByte:
		return *(*uint8)(unsafe.Add(at, m.emptyAt)) == 0
	case nilOrLeft:
		return *(*uintptr)(unsafe.Add(at, m.emptyAt)) == 0 || m.left(unsafe.Add(at, m.offset))
	}
	return m.left != nil && m.left(unsafe.Add(at, m.offset))
}

// repeated says whether two fields have one name: then encoding/json has rules about which
// of them counts.
func repeated(members []member) bool {
	seen := map[string]bool{}
	return slices.ContainsFunc(members, func(m member) bool {
		was := seen[m.name]
		seen[m.name] = true
		return was
	})
}

// membersOf lists the fields of a struct; false if there is one that encoding/json has a rule
// for which is not known here.
func membersOf(t reflect.Type, offset uintptr) (all []member, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" {
			if f.Type.Kind() != reflect.Struct {
				return nil, false
			}
			within, ok := membersOf(f.Type, offset+f.Offset)
			if !ok {
				return nil, false
			}
			all = append(all, within...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		m := member{name: name, offset: offset + f.Offset, encode: encoderOf(f.Type)}
		if m.left, ok = leftOut(f.Type, strings.Split(options, ",")); !ok || !plain(name) {
			return nil, false
		}
		m.head = `,"` + name + `":`
		m.isText = f.Type.Kind() == reflect.String && !hasMethods(f.Type)
		m.look(f.Type)
		all = append(all, m)
	}
	return all, true
}

// look sets how it is seen that the field is left out, if that is simple.
func (m *member) look(t reflect.Type) {
	if m.left == nil {
		return
	}
	m.emptyAt = m.offset
	switch t.Kind() {
	case reflect.Pointer:
		m.empty = zeroWord
	case reflect.String, reflect.Slice:
		m.empty, m.emptyAt = zeroWord, m.offset+unsafe.Offsetof(sliceHeader{}.len)
	case reflect.Int32:
		m.empty = zeroHalf
	case reflect.Bool:
		m.empty = zeroByte
	case reflect.Map:
		m.empty = nilOrLeft
	}
}

// plain says whether a name needs no escapes, and encoding/json takes it from a tag.
func plain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.$/", r)
	})
}

type zeroer interface{ IsZero() bool }

// leftOut says when a field with these options is left out; false for an option that is not
// known here.
func leftOut(t reflect.Type, options []string) (left func(unsafe.Pointer) bool, ok bool) {
	var empty, zero func(unsafe.Pointer) bool
	for _, o := range options {
		switch o {
		case "", "inline":
		case "omitempty":
			if empty, ok = isEmpty(t); !ok {
				return nil, false
			}
		case "omitzero":
			p := reflect.PointerTo(t)
			if !p.Implements(reflect.TypeFor[zeroer]()) || t.Kind() != reflect.Struct {
				return nil, false
			}
			zero = func(at unsafe.Pointer) bool { return reflect.NewAt(t, at).Interface().(zeroer).IsZero() }
		default:
			return nil, false
		}
	}
	switch {
	case zero == nil:
		return empty, true
	case empty == nil:
		return zero, true
	}
	return func(at unsafe.Pointer) bool { return empty(at) || zero(at) }, true
}

// isEmpty is what omitempty means for a type: nil if it is never empty.
func isEmpty(t reflect.Type) (empty func(unsafe.Pointer) bool, ok bool) {
	switch t.Kind() {
	case reflect.String:
		return func(at unsafe.Pointer) bool { return len(*(*string)(at)) == 0 }, true
	case reflect.Bool:
		return func(at unsafe.Pointer) bool { return !*(*bool)(at) }, true
	case reflect.Int32:
		return func(at unsafe.Pointer) bool { return *(*int32)(at) == 0 }, true
	case reflect.Int, reflect.Int64:
		return func(at unsafe.Pointer) bool { return *(*int)(at) == 0 }, t.Size() == unsafe.Sizeof(int(0))
	case reflect.Pointer:
		return func(at unsafe.Pointer) bool { return *(*unsafe.Pointer)(at) == nil }, true
	case reflect.Slice:
		return func(at unsafe.Pointer) bool { return (*sliceHeader)(at).len == 0 }, true
	case reflect.Map:
		return func(at unsafe.Pointer) bool { return reflect.NewAt(t, at).Elem().Len() == 0 }, true
	case reflect.Struct:
		return nil, true
	}
	return nil, false
}
