package jsonend

import "golang.org/x/sys/cpu"

// useAVX2 says that the processor has all instructions of deepAVX2.
var useAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasPCLMULQDQ && cpu.X86.HasPOPCNT && cpu.X86.HasBMI1

// deep goes through whole blocks of data, as long as neither the scanned value nor one directly
// within it begins or ends, and no backslash is outside of strings. It returns how many blocks
// these are, and in stop the one that follows, if there is one, with the brackets outside of
// strings only.
func (s *state) deep(data []byte, stop *block) (n int) {
	if !useAVX2 {
		return s.deepGeneric(data, stop)
	}
	if len(data) < blockSize {
		return 0
	}
	return deepAVX2(s, &data[0], len(data)/blockSize, stop)
}

// deepAVX2 is deepGeneric for the given number of blocks, at least one. It keeps none of the
// pointers.
//
//go:noescape
func deepAVX2(s *state, data *byte, blocks int, stop *block) (n int)
