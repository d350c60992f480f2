package jsonout

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// pair is a member of a map of any values, textPair one of a map of strings.
type pair struct {
	key   string
	value any
}

type textPair struct{ key, value string }

func mapEncoder(t reflect.Type) encoder {
	if t.Key().Kind() != reflect.String || hasMethods(t.Key()) {
		return stockEncoder(t)
	}
	k := newKind()
	if t.Elem().Kind() == reflect.String && !hasMethods(t.Elem()) {
		return func(w *writer, buf []byte, at unsafe.Pointer) []byte {
			return w.textMap(buf, *(*map[string]string)(at), k)
		}
	}
	if t.Elem() == reflect.TypeFor[resource.Quantity]() {
		return func(w *writer, buf []byte, at unsafe.Pointer) []byte {
			return w.quantities(buf, *(*map[string]resource.Quantity)(at), k)
		}
	}
	return stockEncoder(t)
}

// textMap writes a map of strings, sorted by its keys.
func (w *writer) textMap(buf []byte, m map[string]string, k kind) []byte {
	if m == nil {
		return null(buf)
	}
	at := *(*unsafe.Pointer)(unsafe.Pointer(&m))
	begin := len(buf)
	buf, known := w.known(buf, at, 0, k)
	if known {
		return buf
	}
	from := len(w.texts)
	for k, v := range m {
		w.texts = append(w.texts, textPair{k, v})
	}
	members := w.texts[from:]
	slices.SortFunc(members, func(a, b textPair) int { return cmp.Compare(a.key, b.key) })
	buf = append(buf, '{')
	for i := range members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, members[i].key)
		buf = append(buf, ':')
		buf = appendText(buf, members[i].value)
	}
	buf = append(buf, '}')
	clear(members) // holds no object's memory
	w.texts = w.texts[:from]
	w.learn(buf[begin:], at, 0, k)
	return buf
}

// quantities writes a map of quantities, sorted by its keys.
func (w *writer) quantities(buf []byte, m map[string]resource.Quantity, k kind) []byte {
	if m == nil {
		return null(buf)
	}
	at, begin := *(*unsafe.Pointer)(unsafe.Pointer(&m)), len(buf)
	buf, known := w.known(buf, at, 0, k)
	if known {
		return buf
	}
	from := len(w.texts)
	for key := range m {
		w.texts = append(w.texts, textPair{key: key})
	}
	members := w.texts[from:]
	slices.SortFunc(members, func(a, b textPair) int { return cmp.Compare(a.key, b.key) })
	buf = append(buf, '{')
	for i := range members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, members[i].key)
		buf = append(buf, ':')
		value := m[members[i].key]
		buf = own[resource.Quantity](w, buf, unsafe.Pointer(&value))
	}
	buf = append(buf, '}')
	clear(members) // holds no object's memory
	w.texts = w.texts[:from]
	w.learn(buf[begin:], at, 0, k)
	return buf
}

// maxDepth is how deep maps and lists are followed; encoding/json looks for circles beyond.
const maxDepth = 500

// value writes a value of an unstructured object.
func (w *writer) value(buf []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return appendText(buf, v)
	case bool:
		return strconv.AppendBool(buf, v)
	case int64:
		return strconv.AppendInt(buf, v, 10)
	case nil:
		return null(buf)
	case map[string]any:
		return w.anyMap(buf, v)
	case []any:
		return w.list(buf, v)
	default:
		return w.stock(buf, value)
	}
}

// The kinds of the parts of unstructured objects.
var anyMapKind, listKind = newKind(), newKind()

// anyMap writes a map, sorted by its keys.
func (w *writer) anyMap(buf []byte, m map[string]any) []byte {
	if m == nil || w.depth > maxDepth {
		return w.stock(buf, m)
	}
	at, begin := *(*unsafe.Pointer)(unsafe.Pointer(&m)), len(buf)
	buf, known := w.known(buf, at, 0, anyMapKind)
	if known {
		return buf
	}
	w.depth++
	from := len(w.pairs)
	for k, v := range m {
		w.pairs = append(w.pairs, pair{k, v})
	}
	end := len(w.pairs)
	slices.SortFunc(w.pairs[from:end], func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	buf = append(buf, '{')
	for i := from; i < end; i++ { // pairs may move while a value is written
		if i > from {
			buf = append(buf, ',')
		}
		buf = appendText(buf, w.pairs[i].key)
		buf = append(buf, ':')
		buf = w.value(buf, w.pairs[i].value)
	}
	buf = append(buf, '}')
	clear(w.pairs[from:end]) // holds no object's memory
	w.pairs = w.pairs[:from]
	w.depth--
	w.learn(buf[begin:], at, 0, anyMapKind)
	return buf
}

func (w *writer) list(buf []byte, list []any) []byte {
	if list == nil || w.depth > maxDepth {
		return w.stock(buf, list)
	}
	at, begin := unsafe.Pointer(unsafe.SliceData(list)), len(buf)
	buf, known := w.known(buf, at, len(list), listKind)
	if known {
		return buf
	}
	w.depth++
	buf = append(buf, '[')
	for i, v := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = w.value(buf, v)
	}
	buf = append(buf, ']')
	w.depth--
	w.learn(buf[begin:], at, len(list), listKind)
	return buf
}
