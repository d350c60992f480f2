package ondisk

import (
	"bytes"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/sqlite"
)

// partCoder makes the parts of objects from their protobuf messages, for types that have
// metadata, spec and status only.
//
// It remembers the last parts: of the states of one object most have the spec of the state
// before. One goroutine uses it at a time.
type partCoder struct {
	transcoder
	parts []codedPart
}

// codedPart is a part of the last object.
type codedPart struct {
	name   string
	number uint64
	shape  *shape
	raw    []byte
	shown  sqlite.JSON
}

// partCoders returns a pool of coders of a type; nil if it cannot be transcoded.
func partCoders(of reflect.Type, fields []wideField) *sync.Pool {
	parts := []codedPart{{name: "object_metadata", number: metadataField, shape: shapeOf(reflect.TypeFor[metav1.ObjectMeta]())}}
	for _, f := range fields {
		if f.name != "spec" && f.name != "status" {
			return nil
		}
		parts = append(parts, codedPart{name: "object_" + f.name, number: f.number, shape: shapeOf(of.Field(f.index).Type)})
	}
	for _, p := range parts {
		if p.shape == nil || p.shape.kind != shapeMessage || p.number == 0 {
			return nil
		}
	}
	return &sync.Pool{New: func() any {
		return &partCoder{parts: append([]codedPart(nil), parts...)}
	}}
}

// render returns the parts of an object as [sqlite.Renderer] does. It fails if the object
// must be decoded.
func (c *partCoder) render(raw []byte) (map[string]sqlite.JSON, error) {
	all := make(map[string]sqlite.JSON, len(c.parts))
	for i := range c.parts {
		all[c.parts[i].name] = c.parts[i].shape.zero
	}
	seen := uint64(0)
	for len(raw) > 0 {
		number, value, rest, ok := cutField(raw)
		if !ok || number < 64 && seen&(1<<number) != 0 {
			return nil, errUnusual
		}
		seen |= 1 << (number & 63)
		for i := range c.parts {
			if p := &c.parts[i]; p.number == number {
				if err := c.code(p, value); err != nil {
					return nil, err
				}
				all[p.name] = p.shown
			}
		}
		raw = rest
	}
	return all, nil
}

// code makes the JSON of a part, if it is not the same as before.
func (c *partCoder) code(p *codedPart, raw []byte) (err error) {
	if p.shown != nil && bytes.Equal(p.raw, raw) {
		return nil
	}
	size := len(p.shown) + len(p.shown)/8
	p.raw, p.shown = append(p.raw[:0], raw...), nil
	message := raw
	version := ""
	if p.number == metadataField {
		message, version = withoutManagedFields(raw)
	}
	shown, err := c.message(make([]byte, 0, max(size, 256)), p.shape, message)
	if err != nil {
		return err
	}
	if p.shown = shown; p.number == metadataField {
		p.shown = withoutVersion(p.shown, version)
	}
	return nil
}

// withoutManagedFields returns metadata without them, and its version. Managed fields are
// the last field but for rare ones, so that mostly nothing is copied.
func withoutManagedFields(raw []byte) (rest []byte, version string) {
	from := -1
	for left := raw; len(left) > 0; {
		number, value, after, ok := cutField(left)
		if !ok {
			return raw, version // it cannot be transcoded either
		}
		switch {
		case number == versionField:
			version = string(value)
			fallthrough
		case number != managedFieldsField:
			if from >= 0 {
				rest = append(rest, left[:len(left)-len(after)]...)
			}
		case from < 0:
			from = len(raw) - len(left)
			rest = append(rest, raw[:from]...)
		}
		left = after
	}
	if from < 0 {
		return raw, version
	}
	return rest, version
}
