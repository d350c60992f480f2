//go:build !amd64

package jsonend

// deep goes through whole blocks of data, as long as neither the scanned value nor one directly
// within it begins or ends, and no backslash is outside of strings. It returns how many blocks
// these are, and in stop the one that follows, if there is one, with the brackets outside of
// strings only. It stops at every block that begins less than two deep.
func (s *state) deep(data []byte, stop *block) (n int) { return s.deepGeneric(data, stop) }
