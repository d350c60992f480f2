package shape

import "unsafe"

// Memory is shared memory: the first element of a slice, the bytes of a string, a
// map, or what a pointer points to; n is the length of slices and strings.
type Memory struct {
	Ptr unsafe.Pointer
	N   int
}

// Interface is an any in memory.
type Interface struct{ Type, Data unsafe.Pointer }

// SliceHeader is a slice in memory.
type SliceHeader struct {
	Ptr      unsafe.Pointer
	Len, Cap int
}

// Boxed is what an interface points to: the pointer that it holds, if it holds one.
func Boxed(v any) unsafe.Pointer { return (*Interface)(unsafe.Pointer(&v)).Data }

// IsNil says whether a field that leads elsewhere leads nowhere, as most do.
func IsNil(at unsafe.Pointer) bool { return *(*unsafe.Pointer)(at) == nil }
