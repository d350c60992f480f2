package wire

import (
	"reflect"
	"unsafe"
)

// deferred is what is yet to be copied out of the object's bytes: text, and numbers
// that are pointed to. All of it goes into one allocation, whose size is known when the
// object, or a shared part of it, has been read to its end. So a number that is pointed
// to belongs to one object or to one shared part.
type deferred struct {
	texts   []deferredText
	blobs   []deferredText
	tables  []deferredTable
	numbers [numberSizes][]deferredNumber
	times   []deferredTime
	size    int
	// large is how many bytes of text got an allocation of their own.
	large int
}

// deferredText is a string or bytes to be set.
type deferredText struct {
	dst        unsafe.Pointer
	start, end uint32
}

// deferredTable is a map to be filled: with the entries in a run, or with messages
// whose own text has to come first.
type deferredTable struct {
	field      *protoField
	table      unsafe.Pointer
	start, end int

	messages reflect.Value
	keys     []string
	values   unsafe.Pointer
	elem     reflect.Type
}

// largeText gets an allocation of its own: it has nothing to gain, and what keeps
// another string of the object need not keep it too.
const largeText = 4096

func (d *deferred) text(data []byte, start, end int, dst *string) {
	switch n := end - start; {
	case n == 0:
		*dst = ""
	case n > largeText:
		*dst = string(data[start:end])
		d.large += n
	default:
		d.texts = append(d.texts, deferredText{unsafe.Pointer(dst), uint32(start), uint32(end)})
		d.size += n
	}
}

func (d *deferred) blob(data []byte, start, end int, dst *[]byte) {
	switch n := end - start; {
	case n == 0:
		*dst = []byte{}
	case n > largeText:
		*dst = make([]byte, n)
		copy(*dst, data[start:end])
		d.large += n
	default:
		d.blobs = append(d.blobs, deferredText{unsafe.Pointer(dst), uint32(start), uint32(end)})
		d.size += n
	}
}

func (d *deferred) entries(f *protoField, table unsafe.Pointer, start, end int) {
	d.tables = append(d.tables, deferredTable{field: f, table: table, start: start, end: end})
	d.size += end - start
}

func (d *deferred) messages(m reflect.Value, keys []string, values unsafe.Pointer, elem reflect.Type) {
	d.tables = append(d.tables, deferredTable{messages: m, keys: keys, values: values, elem: elem})
}

// deferredFrame is where what is deferred of a part begins.
type deferredFrame struct {
	texts, blobs, tables, times, size, large int
	numbers                                  [numberSizes]int
}

// open begins a part with text of its own.
func (d *deferred) open() deferredFrame {
	frame := deferredFrame{texts: len(d.texts), blobs: len(d.blobs), tables: len(d.tables), times: len(d.times), size: d.size, large: d.large}
	for i := range d.numbers {
		frame.numbers[i] = len(d.numbers[i])
	}
	d.size, d.large = 0, 0
	return frame
}

// close sets what was deferred of a part, and returns how many bytes that are.
func (d *deferred) close(data []byte, frame deferredFrame) int {
	size := d.size + d.large
	slab := make([]byte, 0, (d.size+7)&^7) // aligned for numbers, however small
	slab = d.setNumbers(slab, frame)
	size += d.setTimes(frame)
	for _, t := range d.texts[frame.texts:] {
		at := len(slab)
		slab = append(slab, data[t.start:t.end]...)
		*(*string)(t.dst) = unsafe.String(&slab[at], len(slab)-at)
	}
	for _, t := range d.blobs[frame.blobs:] {
		at := len(slab)
		slab = append(slab, data[t.start:t.end]...)
		*(*[]byte)(t.dst) = slab[at:len(slab):len(slab)]
	}
	for i := range d.tables[frame.tables:] {
		t := &d.tables[frame.tables+i]
		if t.field == nil {
			t.fillMessages()
			continue
		}
		at := len(slab)
		slab = append(slab, data[t.start:t.end]...)
		fill(t.field, t.table, slab[at:len(slab):len(slab)])
	}
	d.rewind(frame)
	return size
}

// rewind forgets what was to be set since a frame was opened.
func (d *deferred) rewind(frame deferredFrame) {
	clear(d.texts[frame.texts:])
	clear(d.blobs[frame.blobs:])
	clear(d.tables[frame.tables:])
	clear(d.times[frame.times:])
	d.texts, d.blobs, d.tables = d.texts[:frame.texts], d.blobs[:frame.blobs], d.tables[:frame.tables]
	d.times = d.times[:frame.times]
	for i := range d.numbers {
		clear(d.numbers[i][frame.numbers[i]:])
		d.numbers[i] = d.numbers[i][:frame.numbers[i]]
	}
	d.size, d.large = frame.size, frame.large
}

func (t *deferredTable) fillMessages() {
	keyType := t.messages.Type().Key()
	for i := range t.keys {
		k := reflect.NewAt(keyType, unsafe.Pointer(&t.keys[i])).Elem()
		v := reflect.NewAt(t.elem, unsafe.Add(t.values, uintptr(i)*t.elem.Size())).Elem()
		t.messages.SetMapIndex(k, v)
	}
}

// text sets a string: to one that was met before, or later.
func (r *protoReader) text(f *protoField, start, end int, dst *string) {
	raw := r.data[start:end]
	if r.pool == nil || len(raw) == 0 || len(raw) > memoText {
		r.texts.text(r.data, start, end, dst)
		return
	}
	if f.identity != isNone {
		r.identify(f.identity, raw)
	}
	place := r.habits.of(f, len(raw))
	if h := &r.habits.known[place]; h.due() {
		last := r.habits.word(place)
		ok := *last == string(raw)
		if !ok {
			var known string
			if known, ok = r.memo.get(r.pool.seedA, raw); ok {
				*last = known
			}
		}
		if h.saw(ok); ok {
			*dst = *last
			return
		}
	}
	r.texts.text(r.data, start, end, dst)
}

// word is a string that cannot be set later.
func (r *protoReader) word(raw []byte) string {
	if r.pool != nil && len(raw) <= memoText {
		if known, ok := r.memo.get(r.pool.seedA, raw); ok {
			return known
		}
	}
	return string(raw)
}
