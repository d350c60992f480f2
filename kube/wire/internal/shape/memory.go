package shape

import "unsafe"

// Memory is what a reference leads to: the first element of a slice, the bytes of a
// string, a map, or what a pointer points to. N is the length of slices and strings.
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

// Boxed is the data pointer of an interface. If the interface holds a pointer or a map,
// it is that pointer.
func Boxed(v any) unsafe.Pointer { return (*Interface)(unsafe.Pointer(&v)).Data }

// IsNil says whether the reference in a field is nil, as most are.
func IsNil(at unsafe.Pointer) bool { return *(*unsafe.Pointer)(at) == nil }
