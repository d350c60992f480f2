package kube

import (
	"bytes"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/jsonend"
)

// shardFilter drops the objects of other shards before they are decoded. It reads one
// field of the metadata where servers write it; if it does not find the field there, it
// reads the object in full, as far as its metadata.
//
// Why always, even if the server selects by shard: a server that does not know the
// parameter ignores it, and nothing in a watch says so.
type shardFilter struct {
	set    ShardSet
	reader *shardReader
	// disproved records that the server of a watch does not select, although it said so;
	// nil for a list.
	disproved func()
}

// foreign reports whether an object, in protobuf without its envelope, belongs to another
// shard. A nil filter has all objects.
func (f *shardFilter) foreign(m media, raw []byte) bool {
	if f == nil {
		return false
	}
	hash, found := f.hash(m, raw)
	if !found || f.set.hasHash(hash) {
		return false
	}
	f.sawForeign()
	return true
}

// foreignObject reports whether the object that begins with raw, in JSON, belongs to another
// shard. It is false if raw does not show it. If it is true, the first seen bytes are those as
// far as within the metadata, outside of strings.
func (f *shardFilter) foreignObject(raw []byte) (seen int, foreign bool) {
	if f == nil {
		return 0, false
	}
	value, rest, found := peekJSON(raw, jsonKeys[f.set.key])
	if !found || f.set.hasHash(shardHash(value)) {
		return 0, false
	}
	f.sawForeign()
	return len(raw) - len(rest), true
}

// foreignFrame is foreign for the object of a watch event. Other events are never foreign.
func (f *shardFilter) foreignFrame(m media, n frame) bool {
	if f == nil {
		return false
	}
	e, ok := openFrame(m, n)
	if t := eventType(e.kind); (!ok && n.size == 0) || t == 0 || t == tarn.EventBookmark {
		return false
	}
	raw := e.object
	if m == mediaProtobuf {
		envelope, _ := openEnvelope(raw) // an event that is cut off may still show its metadata
		raw = envelope.raw
	}
	return f.foreign(m, raw)
}

// hash is that of an object's key. It is not found in an object that cannot be read: such
// an object is a bad one, which every shard reports.
func (f *shardFilter) hash(m media, raw []byte) (hash uint64, found bool) {
	var value []byte
	if m == mediaProtobuf {
		value, found = peekProtobuf(raw, protobufKeys[f.set.key])
	} else {
		value, _, found = peekJSON(raw, jsonKeys[f.set.key])
	}
	if found {
		return shardHash(value), true
	}
	o, err := partial(m, raw)
	if err != nil {
		return 0, false
	}
	if f.set.key == ShardByNamespace {
		return shardHash(o.Namespace), true
	}
	return shardHash(string(o.UID)), true
}

// protobufKeys are the numbers of the fields in an ObjectMeta.
var protobufKeys = map[ShardKey]int{ShardByUID: 5, ShardByNamespace: 3}

// jsonKeys are their names.
var jsonKeys = map[ShardKey]string{ShardByUID: `"uid"`, ShardByNamespace: `"namespace"`}

// peekProtobuf finds a field of the metadata, which is field 1 of every object and comes
// first.
func peekProtobuf(raw []byte, number int) (value []byte, found bool) {
	metadata, _, ok := nextField(raw)
	if !ok || metadata.number != 1 {
		return nil, false
	}
	for rest := metadata.data; len(rest) > 0; {
		var field protoField
		if field, rest, ok = nextField(rest); !ok || field.short {
			return nil, false
		}
		if field.number == number {
			return field.data, field.data != nil
		}
	}
	return nil, false
}

// peekJSON finds a text in the metadata by its quoted name; rest is what follows it.
func peekJSON(raw []byte, name string) (value, rest []byte, found bool) {
	if len(raw) > 0 && raw[0] != '{' {
		raw = bytes.TrimLeft(raw, jsonSpace)
	}
	at := jsonend.Member(jsonend.Member(raw, `"metadata"`), name)
	if len(at) == 0 || at[0] != '"' {
		return nil, nil, false
	}
	end := bytes.IndexByte(at[1:], '"')
	if end < 0 || bytes.IndexByte(at[1:1+end], '\\') >= 0 {
		return nil, nil, false
	}
	return at[1 : 1+end], at[end+2:], true
}
