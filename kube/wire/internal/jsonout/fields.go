package jsonout

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldSet writes the fields of a manager, which are JSON already. encoding/json reads that
// once more, byte by byte, which takes longer than all the rest of a pod. It need not change
// a text that is made of objects in objects without spaces, and that is checked here.
func fieldSet(w *writer, buf []byte, at unsafe.Pointer) []byte {
	f := (*metav1.FieldsV1)(at)
	if known, ok := any(f).(rawBytes); ok {
		if raw := known.GetRawBytes(); nestedObjects(raw) {
			return append(buf, raw...)
		}
	}
	return w.stock(buf, f)
}

// rawBytes is what metav1.FieldsV1 implements from apimachinery 0.36 on. Package kube can be
// built with 0.35 too. Why not the field Raw: a build tag of apimachinery removes it.
type rawBytes interface{ GetRawBytes() []byte }

// nestedObjects says whether a text is one JSON object, without spaces, whose values are such
// objects or empty, and whose names need no other escapes than they have.
func nestedObjects(raw []byte) bool {
	if len(raw) < 2 || raw[0] != '{' {
		return false
	}
	depth := 1
	for i := 1; i < len(raw); {
		switch raw[i] {
		case '"': // after { or , only, as the cases below see to it
			end := nameEnd(raw, i+1)
			if end < 0 || end+2 >= len(raw) || raw[end+1] != ':' || raw[end+2] != '{' || depth == maxDepth {
				return false
			}
			depth++
			i = end + 3
		case '}':
			if depth--; depth == 0 {
				return i == len(raw)-1
			}
			if i++; i < len(raw) && raw[i] == ',' {
				if i++; i == len(raw) || raw[i] != '"' {
					return false
				}
			} else if i == len(raw) || raw[i] != '}' {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// nameEnd returns the index of the quote that ends the name starting at i. It returns -1 if
// there is no such quote, or if the name has a character that encoding/json would change.
func nameEnd(raw []byte, i int) int {
	for i = safeEnd(raw, i); i < len(raw); i = safeEnd(raw, i) {
		switch c := raw[i]; {
		case c == '"':
			return i
		case c == '\\' && i+1 < len(raw) && (raw[i+1] == '"' || raw[i+1] == '\\'):
			i += 2
		default:
			return -1
		}
	}
	return -1
}
