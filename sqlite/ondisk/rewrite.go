package ondisk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/sqlite"
)

// identity names what a collection is a copy of: which objects, and which parts of them.
func (c *codec[T]) identity() string {
	text := c.objects() + leftOutText(c.of)
	if c.of.Transformed {
		text += ", " + c.transform
	}
	return text
}

// objects is the part of the identity that says which objects there are.
func (c *codec[T]) objects() string {
	return fmt.Sprintf("%s of %s, %s", c.of.Resource.GroupResource(), c.of.Server(), strings.TrimSuffix(c.of.Selection(), leftOutText(c.of)))
}

// leftOutText ends [kube.Origin].Selection.
func leftOutText(of kube.Origin) string {
	return fmt.Sprintf(" without %q transformed %v", of.Drop, of.Transformed)
}

// leftOut is what a collection left out of its objects.
type leftOut struct {
	without []string
	// transform is empty if there was none.
	transform string
	// whole says that no annotations were left out by the codec.
	whole bool
}

// leftOutOf reads what was left out of a collection that has the same objects in the same
// encoding.
func (c *codec[T]) leftOutOf(before sqlite.Holding) (s leftOut, ok bool) {
	encoding := func(schema string) string { return strings.Replace(schema, " whole ", " ", 1) }
	rest, ok := strings.CutPrefix(before.Identity, c.objects()+" without [")
	if !ok || encoding(before.Schema) != encoding(c.Schema()) {
		return s, false
	}
	s.whole = encoding(before.Schema) != before.Schema
	for !strings.HasPrefix(rest, "]") {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return s, false
		}
		path, err := strconv.Unquote(quoted)
		if err != nil {
			return s, false
		}
		s.without = append(s.without, path)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	switch {
	case rest == "] transformed false":
		return s, true
	default:
		s.transform, ok = strings.CutPrefix(rest, "] transformed true, ")
		return s, ok
	}
}

// Rewrite turns objects that were kept with other fields into objects of the present shape.
// It can do so if they have the same server, selection, version and Go type, and did not go
// through another transform.
func (c *codec[T]) Rewrite(before sqlite.Holding) (func(raw []byte) (T, error), bool) {
	was, ok := c.leftOutOf(before)
	now := leftOut{without: c.of.Drop, whole: len(c.leftOut) == 0}
	if c.of.Transformed {
		now.transform = c.transform
	}
	newTransform := now.transform != "" && was.transform == ""
	if !ok || newTransform && c.of.Transform == nil || now.transform != "" && was.transform != "" && now.transform != was.transform {
		return nil, false
	}
	fewer := slices.ContainsFunc(now.without, func(path string) bool { return !slices.Contains(was.without, path) }) || was.whole && !now.whole
	if !fewer && !newTransform {
		return nil, true
	}
	fields, annotations := c.dropped()
	decoder, err := wire.NewDecoder(c.of.Object, wire.Options{Drop: fields})
	if err != nil {
		return nil, false
	}
	decode := func(raw []byte) (any, error) {
		if c.protobuf {
			return decoder.Protobuf(raw)
		}
		return decoder.JSON(raw)
	}
	return func(raw []byte) (object T, err error) {
		decoded, err := decode(raw)
		if err != nil {
			return object, err
		}
		decoded = kube.StripAnnotations(decoded, annotations...)
		if newTransform {
			if decoded, err = c.of.Transform(decoded); err != nil {
				return object, err
			}
		}
		object, ok := decoded.(T)
		if !ok {
			return object, fmt.Errorf("it became a %T", decoded)
		}
		c.of.Mark(object)
		return object, nil
	}, true
}

// dropped are the fields and the annotations that are left out now.
func (c *codec[T]) dropped() (fields, annotations []string) {
	annotations = c.leftOut
	for _, path := range c.of.Drop {
		if name, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
			annotations = append(slices.Clip(annotations), strings.TrimSuffix(name, "']"))
		} else {
			fields = append(fields, path)
		}
	}
	return fields, annotations
}

// withoutTable is a codec without the methods of a table.
type withoutTable[T any] struct {
	sqlite.Codec[T]
	sqlite.Identifier[T]
	sqlite.Rewriter[T]
}
