package jsonend

func init() {
	if useAVX2 {
		deeps["AVX2"] = func(s *state, data []byte, stop *block) int {
			if len(data) < blockSize {
				return 0
			}
			return deepAVX2(s, &data[0], len(data)/blockSize, stop)
		}
	}
}
