package wire

import "unsafe"

// part is shared memory: the first element of a slice, the bytes of a string, a
// map, or what a pointer points to; n is the length of slices and strings.
type part struct {
	ptr unsafe.Pointer
	n   int
}

// eface is an any in memory.
type eface struct{ t, data unsafe.Pointer }

// sliceHeader is a slice in memory.
type sliceHeader struct {
	ptr      unsafe.Pointer
	len, cap int
}

// boxed is what an interface points to: the pointer that it holds, if it holds one.
func boxed(v any) unsafe.Pointer { return (*eface)(unsafe.Pointer(&v)).data }

// isNil says whether a field that leads elsewhere leads nowhere, as most do.
func isNil(at unsafe.Pointer) bool { return *(*unsafe.Pointer)(at) == nil }
