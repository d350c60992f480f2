package wire

import "github.com/tarnproject/tarn/kube/wire/internal/jsonout"

// AppendJSON appends an object as JSON to buf. The bytes are those of json.Marshal;
// BenchmarkAppendJSON compares the two. Most of what it saves is memory: give it a buffer
// that was used before, or one with room for the object.
func AppendJSON(buf []byte, object any) ([]byte, error) { return jsonout.Append(buf, object) }

// A JSONEncoder appends many objects as [AppendJSON] does. It encodes a part that objects
// share once, and copies its JSON afterwards: objects of a [Decoder] with a [Pool] share most
// of theirs.
//
//   - Objects that it was given must not change before Close.
//   - It is for one goroutine at a time.
type JSONEncoder struct{ encoder *jsonout.Encoder }

// NewJSONEncoder returns an encoder. The caller closes it.
func NewJSONEncoder() JSONEncoder { return JSONEncoder{jsonout.NewEncoder()} }

// Append appends an object as JSON to buf.
func (e JSONEncoder) Append(buf []byte, object any) ([]byte, error) {
	return e.encoder.Append(buf, object)
}

// Close forgets all objects. The encoder must not be used afterwards.
func (e JSONEncoder) Close() { e.encoder.Close() }
