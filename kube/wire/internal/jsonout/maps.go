package jsonout

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"unsafe"
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
	if t.Elem().Kind() == reflect.String && !hasMethods(t.Elem()) {
		return func(w *writer, at unsafe.Pointer) { w.textMap(*(*map[string]string)(at)) }
	}
	if ownForm[t.Elem()] == nil {
		return stockEncoder(t)
	}
	encode := encoderOf(t.Elem())
	return func(w *writer, at unsafe.Pointer) { w.knownMap(reflect.NewAt(t, at).Elem(), encode) }
}

// textMap writes a map of strings, sorted by its keys.
func (w *writer) textMap(m map[string]string) {
	if m == nil {
		w.null()
		return
	}
	from := len(w.texts)
	for k, v := range m {
		w.texts = append(w.texts, textPair{k, v})
	}
	part := w.texts[from:]
	slices.SortFunc(part, func(a, b textPair) int { return cmp.Compare(a.key, b.key) })
	w.buf = append(w.buf, '{')
	for i := range part {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.text(part[i].key)
		w.buf = append(w.buf, ':')
		w.text(part[i].value)
	}
	w.buf = append(w.buf, '}')
	clear(part) // holds no object's memory
	w.texts = w.texts[:from]
}

// knownMap writes a map of values that encode themselves, such as quantities.
func (w *writer) knownMap(m reflect.Value, encode encoder) {
	if m.IsNil() {
		w.null()
		return
	}
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	value := reflect.New(m.Type().Elem())
	w.buf = append(w.buf, '{')
	for i, k := range keys {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.text(k.String())
		w.buf = append(w.buf, ':')
		value.Elem().Set(m.MapIndex(k))
		encode(w, value.UnsafePointer())
	}
	w.buf = append(w.buf, '}')
}

// maxDepth is how deep maps and lists are followed; encoding/json looks for circles beyond.
const maxDepth = 500

// value writes a value of an unstructured object.
func (w *writer) value(value any) {
	switch v := value.(type) {
	case string:
		w.text(v)
	case bool:
		w.buf = strconv.AppendBool(w.buf, v)
	case int64:
		w.buf = strconv.AppendInt(w.buf, v, 10)
	case nil:
		w.null()
	case map[string]any:
		w.anyMap(v)
	case []any:
		w.list(v)
	default:
		w.stock(value)
	}
}

// anyMap writes a map, sorted by its keys.
func (w *writer) anyMap(m map[string]any) {
	if m == nil || w.depth > maxDepth {
		w.stock(m)
		return
	}
	w.depth++
	from := len(w.pairs)
	for k, v := range m {
		w.pairs = append(w.pairs, pair{k, v})
	}
	end := len(w.pairs)
	slices.SortFunc(w.pairs[from:end], func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	w.buf = append(w.buf, '{')
	for i := from; i < end; i++ { // pairs may move while a value is written
		if i > from {
			w.buf = append(w.buf, ',')
		}
		w.text(w.pairs[i].key)
		w.buf = append(w.buf, ':')
		w.value(w.pairs[i].value)
	}
	w.buf = append(w.buf, '}')
	clear(w.pairs[from:end]) // holds no object's memory
	w.pairs = w.pairs[:from]
	w.depth--
}

func (w *writer) list(list []any) {
	if list == nil || w.depth > maxDepth {
		w.stock(list)
		return
	}
	w.depth++
	w.buf = append(w.buf, '[')
	for i, v := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.value(v)
	}
	w.buf = append(w.buf, ']')
	w.depth--
}
