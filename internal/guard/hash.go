package guard

import (
	"hash/maphash"
	"math"
	"reflect"
)

var seed = maphash.MakeSeed()

// hashOf hashes a value and everything that it refers to. Entries of maps are added up,
// because they have no order.
func hashOf(v reflect.Value) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	write(&h, v, 0)
	return h.Sum64()
}

func write(h *maphash.Hash, v reflect.Value, depth int) {
	if depth > maxDepth {
		return
	}
	number := func(n uint64) {
		var b [8]byte
		for i := range b {
			b[i] = byte(n >> (8 * i))
		}
		h.Write(b[:])
	}
	number(uint64(v.Kind()))
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			number(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		number(v.Uint())
	case reflect.Float32, reflect.Float64:
		number(math.Float64bits(v.Float()))
	case reflect.String:
		number(uint64(v.Len()))
		h.WriteString(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		number(1)
		write(h, v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		number(uint64(v.Len()))
		for i := range v.Len() {
			write(h, v.Index(i), depth+1)
		}
	case reflect.Struct:
		selfWriting := isLazy(v.Type())
		for i := range v.NumField() {
			if f := v.Type().Field(i); isPrivateReference(f) || selfWriting && !f.IsExported() {
				continue
			}
			write(h, v.Field(i), depth+1)
		}
	case reflect.Map:
		number(uint64(v.Len()))
		var sum uint64
		for entries := v.MapRange(); entries.Next(); {
			var e maphash.Hash
			e.SetSeed(seed)
			write(&e, entries.Key(), depth+1)
			write(&e, entries.Value(), depth+1)
			sum += e.Sum64()
		}
		number(sum)
	}
}
