// Package jsonout encodes Kubernetes objects as JSON: the very bytes of encoding/json, in
// less time.
//
// An encoder is made once for each type and reads fields at their offsets. Whatever is
// unusual, such as types with methods of their own, is left to encoding/json.
//
// Why the same bytes: what was written before is compared with what would be written now, by
// a digest. Another order of fields, or other escapes, would look like a change.
//
// It imports nothing of the module.
package jsonout
