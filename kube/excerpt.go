package kube

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/jsonend"
)

// excerpt is what can be read of an object that cannot be decoded, or is available
// only in part. It identifies the object in reports.
type excerpt struct {
	runtime.TypeMeta
	namespace, name, version string
}

func (g excerpt) bad(err error) tarn.BadObject {
	b := tarn.BadObject{Err: err, Version: tarn.Version(g.version)}
	switch {
	case g.name == "":
	case g.namespace == "":
		b.Key = tarn.Key(g.name)
	default:
		b.Key = tarn.Key(g.namespace + "/" + g.name)
	}
	return b
}

// excerptOf reads an object from a list or, in protobuf, from an envelope.
func excerptOf(m media, raw []byte) (g excerpt) {
	if m == mediaProtobuf {
		fields(raw, func(f protoField) {
			if f.number == 1 {
				g.metadata(f.data)
			}
		})
		return g
	}
	jsonFields(raw, func(name string, value []byte) {
		switch name {
		case "kind":
			g.Kind = jsonText(value)
		case "apiVersion":
			g.APIVersion = jsonText(value)
		case "metadata":
			jsonFields(value, func(name string, value []byte) {
				switch name {
				case "name":
					g.name = jsonText(value)
				case "namespace":
					g.namespace = jsonText(value)
				case "resourceVersion":
					g.version = jsonText(value)
				}
			})
		}
	})
	return g
}

// metadata reads an ObjectMeta as far as it goes. It ignores a text that is cut
// off.
func (g *excerpt) metadata(raw []byte) {
	fields(raw, func(f protoField) {
		switch {
		case f.short:
		case f.number == 1:
			g.name = string(f.data)
		case f.number == 3:
			g.namespace = string(f.data)
		case f.number == 6:
			g.version = string(f.data)
		}
	})
}

// jsonFields walks the fields of an object as far as they are well-formed. The
// value of the last may be cut off.
func jsonFields(raw []byte, see func(name string, value []byte)) {
	raw, ok := bytes.CutPrefix(bytes.TrimLeft(raw, jsonSpace), []byte("{"))
	for ok {
		raw = bytes.TrimLeft(raw, jsonSpace+",")
		if len(raw) == 0 || raw[0] != '"' {
			return
		}
		var key, value jsonend.Scan
		if !key.Scan(raw) {
			return
		}
		name := jsonText(raw[:key.Pos])
		raw = bytes.TrimLeft(raw[key.Pos:], jsonSpace+":")
		if len(raw) == 0 {
			return
		}
		ok = value.Scan(raw)
		see(name, raw[:value.Pos])
		raw = raw[value.Pos:]
	}
}

const jsonSpace = " \t\r\n"

// jsonText is the value of a JSON string, empty if raw is not a string.
func jsonText(raw []byte) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}
