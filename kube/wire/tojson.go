package wire

import "github.com/tarnproject/tarn/kube/wire/internal/jsonout"

// AppendJSON appends an object as JSON to buf. The bytes are those of json.Marshal;
// BenchmarkAppendJSON compares the two. Most of what it saves is memory: give it a buffer
// that was used before, or one with room for the object.
func AppendJSON(buf []byte, object any) ([]byte, error) { return jsonout.Append(buf, object) }
