package protobuf

import (
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/recent"
)

// deferred is what is yet to be copied out of the object's bytes: text, and numbers
// behind pointers. All of it goes into one allocation. The size is known when the
// object, or a shared part of it, has been read to its end. So a number behind a
// pointer belongs to one object or to one shared part.
type deferred struct {
	texts   []deferredText
	blobs   []deferredText
	entries []deferredEntry
	maps    []deferredMap
	numbers [numberSizes][]deferredNumber
	times   []deferredTime
	size    int
	// first is where the texts of the innermost open frame begin.
	first int
	// large is how many bytes of text got an allocation of their own.
	large int
	// frame is the number of the innermost open frame, opened that of the last
	// frame that was opened. A frame within another has the larger number.
	frame, opened int
}

// deferredText is a string or bytes to be set.
type deferredText struct {
	dst        unsafe.Pointer
	start, end uint32
	// same, if it is not 0, is the number, from 1, of an earlier text that is equal.
	same uint32
}

// sameTexts is with how many earlier texts a text is compared, if it is at least
// sameLength long. A pod's mounts name its volumes, and a pod has its address
// twice. A field whose texts hardly ever repeat, such as the addresses of an EndpointSlice,
// is compared only now and then.
const (
	sameTexts  = 32
	sameLength = 8
)

// deferredEntry is an entry to be put into a map of texts or of bytes. Its key and
// its value are known, or are bytes to be copied.
type deferredEntry struct {
	table                unsafe.Pointer
	isText               bool
	knownKey, knownValue string
	key, keyEnd          uint32
	value, end           uint32
}

// deferredMap is a map to be filled with messages, whose text is set first.
type deferredMap struct {
	table  reflect.Value
	keys   []string
	values unsafe.Pointer
	elem   reflect.Type
}

// text defers a text. h counts how often texts of its field are equal to an earlier one; if
// it is nil, the text is compared with none.
func (d *deferred) text(data []byte, start, end int, dst *string, h *recent.Repetition) {
	switch n := end - start; {
	case n == 0:
		*dst = ""
	case n > recent.LargeText:
		*dst = string(data[start:end])
		d.large += n
	default:
		text := deferredText{dst: unsafe.Pointer(dst), start: uint32(start), end: uint32(end)}
		if h != nil && n >= sameLength && h.Try() {
			text.same = d.earlier(data, start, end)
			h.Record(text.same > 0)
		}
		d.texts = append(d.texts, text)
		if text.same == 0 {
			d.size += n
		}
	}
}

// earlier returns the number of an equal text of this frame, or 0.
func (d *deferred) earlier(data []byte, start, end int) uint32 {
	for i := len(d.texts) - 1; i >= max(d.first, len(d.texts)-sameTexts); i-- {
		t := &d.texts[i]
		if int(t.end-t.start) == end-start && t.same == 0 && string(data[t.start:t.end]) == string(data[start:end]) {
			return uint32(i) + 1
		}
	}
	return 0
}

func (d *deferred) blob(data []byte, start, end int, dst *[]byte) {
	switch n := end - start; {
	case n == 0:
		*dst = []byte{}
	case n > recent.LargeText:
		*dst = make([]byte, n)
		copy(*dst, data[start:end])
		d.large += n
	default:
		d.blobs = append(d.blobs, deferredText{dst: unsafe.Pointer(dst), start: uint32(start), end: uint32(end)})
		d.size += n
	}
}

func (d *deferred) entry(e deferredEntry) {
	d.entries = append(d.entries, e)
	d.size += int(e.keyEnd - e.key + e.end - e.value)
}

func (d *deferred) messages(m reflect.Value, keys []string, values unsafe.Pointer, elem reflect.Type) {
	d.maps = append(d.maps, deferredMap{m, keys, values, elem})
}

// deferredFrame is where the deferred values of a part begin.
type deferredFrame struct {
	texts, blobs, entries, maps, times int
	first, size, large                 int
	numbers                            [numberSizes]int
	outer                              int
}

// open begins a part with text of its own.
func (d *deferred) open() deferredFrame {
	frame := deferredFrame{
		texts: len(d.texts), blobs: len(d.blobs), entries: len(d.entries), maps: len(d.maps), times: len(d.times),
		first: d.first, size: d.size, large: d.large, outer: d.frame,
	}
	for i := range d.numbers {
		frame.numbers[i] = len(d.numbers[i])
	}
	d.first, d.size, d.large = len(d.texts), 0, 0
	d.opened++
	d.frame = d.opened
	return frame
}

// close sets the deferred values of a part, and returns their size in bytes.
func (d *deferred) close(data []byte, frame deferredFrame) int {
	size := d.size + d.large
	slab := make([]byte, 0, (d.size+7)&^7) // aligned for numbers, however small
	slab = d.setNumbers(slab, frame)
	size += d.setTimes(frame)
	for _, t := range d.texts[frame.texts:] {
		if t.same > 0 {
			*(*string)(t.dst) = *(*string)(d.texts[t.same-1].dst)
			continue
		}
		slab = append(slab, data[t.start:t.end]...)
		*(*string)(t.dst) = lastText(slab, int(t.end-t.start))
	}
	for _, t := range d.blobs[frame.blobs:] {
		at := len(slab)
		slab = append(slab, data[t.start:t.end]...)
		*(*[]byte)(t.dst) = slab[at:len(slab):len(slab)]
	}
	for i := range d.entries[frame.entries:] {
		slab = d.entries[frame.entries+i].put(data, slab)
	}
	for i := range d.maps[frame.maps:] {
		d.maps[frame.maps+i].fill()
	}
	d.rewind(frame)
	return size
}

// rewind drops the values that were deferred since a frame was opened.
func (d *deferred) rewind(frame deferredFrame) {
	clear(d.texts[frame.texts:])
	clear(d.blobs[frame.blobs:])
	clear(d.entries[frame.entries:])
	clear(d.maps[frame.maps:])
	clear(d.times[frame.times:])
	d.texts, d.blobs, d.entries = d.texts[:frame.texts], d.blobs[:frame.blobs], d.entries[:frame.entries]
	d.maps, d.times = d.maps[:frame.maps], d.times[:frame.times]
	for i := range d.numbers {
		clear(d.numbers[i][frame.numbers[i]:])
		d.numbers[i] = d.numbers[i][:frame.numbers[i]]
	}
	d.first, d.size, d.large, d.frame = frame.first, frame.size, frame.large, frame.outer
}

// put puts the entry into its map. Bytes that are not known yet are appended to
// slab.
func (e *deferredEntry) put(data, slab []byte) []byte {
	key := e.knownKey
	if e.key < e.keyEnd {
		slab = append(slab, data[e.key:e.keyEnd]...)
		key = lastText(slab, int(e.keyEnd-e.key))
	}
	at := len(slab)
	slab = append(slab, data[e.value:e.end]...)
	switch m := e.table; {
	case !e.isText:
		(*(*map[string][]byte)(unsafe.Pointer(&m)))[key] = slab[at:len(slab):len(slab)]
	case e.value < e.end:
		(*(*map[string]string)(unsafe.Pointer(&m)))[key] = lastText(slab, len(slab)-at)
	default:
		(*(*map[string]string)(unsafe.Pointer(&m)))[key] = e.knownValue
	}
	return slab
}

// lastText returns the last n bytes of slab as a text, without a copy.
func lastText(slab []byte, n int) string {
	if n == 0 {
		return ""
	}
	return unsafe.String(&slab[len(slab)-n], n)
}

func (t *deferredMap) fill() {
	keyType := t.table.Type().Key()
	for i := range t.keys {
		k := reflect.NewAt(keyType, unsafe.Pointer(&t.keys[i])).Elem()
		v := reflect.NewAt(t.elem, unsafe.Add(t.values, uintptr(i)*t.elem.Size())).Elem()
		t.table.SetMapIndex(k, v)
	}
}

// text sets a string: at once if the text is known, else when the frame closes.
func (r *reader) text(f *field, start, end int, dst *string) {
	raw := r.data[start:end]
	if r.pool == nil || len(raw) == 0 || len(raw) > recent.MaxText {
		r.texts.text(r.data, start, end, dst, r.inObject(f, len(raw)))
		return
	}
	if f.identity != isNone {
		r.identify(f.identity, raw)
	}
	place := r.stats.index(f, len(raw))
	if h := &r.stats.inPool[place]; h.Try() {
		last := r.stats.lastText(place)
		ok := *last == string(raw)
		if !ok {
			var known string
			if known, ok = r.known.Get(r.pool.Seed, raw); ok {
				*last = known
			}
		}
		if h.Record(ok); ok {
			*dst = *last
			return
		}
	}
	r.texts.text(r.data, start, end, dst, &r.stats.inObject[place])
}

// textNow returns a string that cannot be set later.
func (r *reader) textNow(raw []byte) string {
	if r.pool != nil && len(raw) <= recent.MaxText {
		if known, ok := r.known.Get(r.pool.Seed, raw); ok {
			return known
		}
	}
	return string(raw)
}
