package protobuf

import (
	"bytes"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/recent"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// textMap makes a map that gets its entries when the text is set.
func (r *reader) textMap(f *field, i, end, n int) (unsafe.Pointer, bool) {
	if at := validEntries(r.data[:end], i, int(f.tagSize)); at >= 0 {
		return nil, r.stop(at)
	}
	m := f.makeMap(n)
	r.entries(f, m, i, end)
	return m, true
}

// makeMap makes a map of texts or bytes. It also makes maps of named types, which
// differ only in their name.
func (f *field) makeMap(n int) unsafe.Pointer {
	if f.kind == kindTextMap {
		m := make(map[string]string, n)
		return *(*unsafe.Pointer)(unsafe.Pointer(&m))
	}
	m := make(map[string][]byte, n)
	return *(*unsafe.Pointer)(unsafe.Pointer(&m))
}

// quantityMap makes a map of quantities, such as a ResourceList.
func (r *reader) quantityMap(f *field, i, end, n int) (unsafe.Pointer, bool) {
	b := r.data[:end]
	m := make(map[string]resource.Quantity, n)
	for range n {
		e := entryAt(b, i+int(f.tagSize))
		if e.end < 0 || !flat(b[:e.end], e.value) {
			return nil, r.stop(i)
		}
		q, ok := r.quantity(b[e.value:e.end])
		if !ok {
			return nil, r.stop(i)
		}
		m[r.textNow(b[e.key:e.keyEnd])] = q
		i = e.end
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&m)), true
}

// messageMap makes a map of messages. They are decoded beside it, because a value
// in a map cannot be completed in place once the text is known.
func (r *reader) messageMap(f *field, i, end, n int) (unsafe.Pointer, bool) {
	b := r.data[:end]
	keys := make([]string, n)
	values := f.newArray(n)
	child := f.child()
	for k := range n {
		e := entryAt(b, i+int(f.tagSize))
		if e.end < 0 {
			return nil, r.stop(i)
		}
		r.texts.text(r.data, e.key, e.keyEnd, &keys[k], nil)
		if !r.message(child, e.value, e.end, unsafe.Add(values, uintptr(k)*uintptr(f.elemSize))) {
			return nil, false
		}
		i = e.end
	}
	m := reflect.MakeMapWithSize(f.typ, n)
	r.texts.messages(m, keys, values, f.elem)
	return m.UnsafePointer(), true
}

// privateMap makes a map that belongs to this object only. Its text is shared: the
// bytes of the run are kept, and the strings point into them.
func (r *reader) privateMap(f *field, i, end, n int, dst unsafe.Pointer) int {
	if at := validEntries(r.data[:end], i, int(f.tagSize)); at >= 0 {
		return r.fail(at)
	}
	m := f.makeMap(n)
	*(*unsafe.Pointer)(dst) = m
	text, admission := r.lookUp(f, i, end, end-i)
	switch {
	case text.Ptr != nil:
	case admission.admit:
		run := bytes.Clone(r.data[i:end])
		made := shape.Memory{Ptr: unsafe.Pointer(unsafe.SliceData(run)), N: len(run)}
		text = r.offer(f, admission, i, end, pool.Part{Memory: made, Size: len(run)})
	default:
		r.entries(f, m, i, end)
		return end
	}
	fill(f, m, unsafe.Slice((*byte)(text.Ptr), text.N))
	return end
}

// entries fills a map when the text is set. Keys and many values repeat in other
// objects whose maps differ in an entry or two; these are shared as texts.
func (r *reader) entries(f *field, m unsafe.Pointer, i, end int) {
	for i < end {
		e := entryAt(r.data[:end], i+int(f.tagSize))
		entry := deferredEntry{table: m, isText: f.kind == kindTextMap}
		var ok bool
		if entry.knownKey, ok = r.knownText(e.key, e.keyEnd); !ok {
			entry.key, entry.keyEnd = uint32(e.key), uint32(e.keyEnd)
		}
		if entry.isText {
			entry.knownValue, ok = r.knownText(e.value, e.end)
		}
		if !entry.isText || !ok {
			entry.value, entry.end = uint32(e.value), uint32(e.end)
		}
		r.texts.entry(entry)
		i = e.end
	}
}

// knownText returns a text that was seen before, is empty, or is so large that it
// has memory of its own.
func (r *reader) knownText(start, end int) (string, bool) {
	switch raw := r.data[start:end]; {
	case len(raw) == 0:
		return "", true
	case len(raw) > recent.LargeText:
		r.texts.large += len(raw)
		return string(raw), true
	case len(raw) > recent.MaxText || r.pool == nil:
		return "", false
	default:
		return r.known.Get(r.pool.Seed, raw)
	}
}

// mapEntry is where a map's key and value are, in a buffer.
type mapEntry struct{ key, keyEnd, value, end int }

// entryAt finds key and value of the map entry whose length is at i. Its end is -1
// if the entry is irregular: writers write the key, then the value or, for nil,
// nothing.
func entryAt(b []byte, i int) mapEntry {
	start, end := span(b, i)
	if end < 0 || start == end || b[start] != 1<<3|wireBytes {
		return mapEntry{end: -1}
	}
	b = b[:end]
	key, keyEnd := span(b, start+1)
	if keyEnd == end {
		return mapEntry{key, end, end, end}
	}
	if keyEnd < 0 || b[keyEnd] != 2<<3|wireBytes {
		return mapEntry{end: -1}
	}
	value, valueEnd := span(b, keyEnd+1)
	if valueEnd != end {
		return mapEntry{end: -1}
	}
	return mapEntry{key, keyEnd, value, end}
}

// validEntries returns the position in a run of the first irregular entry, or -1.
func validEntries(b []byte, i, tagSize int) int {
	for i < len(b) {
		e := entryAt(b, i+tagSize)
		if e.end < 0 {
			return i
		}
		i = e.end
	}
	return -1
}

// fill gives a map of texts or bytes the entries of a run, whose bytes it keeps.
func fill(f *field, m unsafe.Pointer, run []byte) {
	text := unsafe.String(unsafe.SliceData(run), len(run))
	for i := 0; i < len(run); {
		e := entryAt(run, i+int(f.tagSize))
		k := text[e.key:e.keyEnd]
		if f.kind == kindTextMap {
			(*(*map[string]string)(unsafe.Pointer(&m)))[k] = text[e.value:e.end]
		} else {
			(*(*map[string][]byte)(unsafe.Pointer(&m)))[k] = run[e.value:e.end:e.end]
		}
		i = e.end
	}
}
