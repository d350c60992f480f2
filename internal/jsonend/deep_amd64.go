package jsonend

import "golang.org/x/sys/cpu"

// useAVX2 and useAVX512 say that the processor has all instructions of deepAVX2 or deepAVX512.
var (
	useAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasPCLMULQDQ && cpu.X86.HasPOPCNT && cpu.X86.HasBMI1
	useAVX512 = useAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW
)

// deep goes through whole blocks of data, as long as neither the scanned value nor one directly
// within it begins or ends, and no backslash is outside of strings. It returns how many blocks
// these are, and in stop the one that follows, if there is one, with the brackets outside of
// strings only. It stops at every block that begins less than two deep.
func (s *state) deep(data []byte, stop *block) (n int) {
	switch {
	case !useAVX2:
		return s.deepGeneric(data, stop)
	case len(data) < blockSize:
		return 0
	case useAVX512:
		return deepAVX512(s, &data[0], len(data)/blockSize, stop)
	}
	return deepAVX2(s, &data[0], len(data)/blockSize, stop)
}

// deepAVX2 is deepGeneric for the given number of blocks, at least one. It keeps none of the
// pointers.
//
//go:noescape
func deepAVX2(s *state, data *byte, blocks int, stop *block) (n int)

// deepAVX512 is deepAVX2 with instructions that make a mask of a block at once.
//
//go:noescape
func deepAVX512(s *state, data *byte, blocks int, stop *block) (n int)
