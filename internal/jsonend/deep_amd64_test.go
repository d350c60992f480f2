package jsonend

func init() {
	add := func(name string, has bool, deep func(s *state, data *byte, blocks int, stop *block) int) {
		if !has {
			return
		}
		deeps[name] = func(s *state, data []byte, stop *block) int {
			if len(data) < blockSize {
				return 0
			}
			return deep(s, &data[0], len(data)/blockSize, stop)
		}
	}
	add("AVX2", useAVX2, deepAVX2)
	add("AVX512", useAVX512, deepAVX512)
}
