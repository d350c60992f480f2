package json

import (
	"reflect"
	"strings"
	"unicode"
)

// fieldPlan is one JSON name of a struct's field.
type fieldPlan struct {
	name   string
	lead   string // the name as servers write it: quoted, with its colon
	bit    int    // among the fields of its struct
	id     int    // among the fields of the decoder
	offset uintptr
	hops   []hop // embedded pointers on the way; offset counts from the last
	plan   *plan
}

// hop is a pointer to an embedded struct, made when the first of its fields is met.
type hop struct {
	offset uintptr
	typ    reflect.Type // pointed to
}

// candidate is a field that may have a name, before the rules of embedding say which
// one gets it.
type candidate struct {
	name      string
	tagged    bool
	depth     int
	quoted    bool // by the tag's option "string"
	irregular bool
	field     reflect.StructField
	offset    uintptr
	hops      []hop
}

// embedded is a struct whose fields count as its parent's.
type embedded struct {
	typ       reflect.Type
	offset    uintptr
	hops      []hop
	irregular bool
}

// candidatesOf lists the fields of t and of what it embeds, level by level. It
// is not ok if one level embeds a type twice: the stock decoder has its own
// rule for that.
func candidatesOf(t reflect.Type) (found []candidate, ok bool) {
	seen := map[reflect.Type]bool{}
	level := []embedded{{typ: t}}
	for depth := 0; len(level) > 0; depth++ {
		var below []embedded
		for _, parent := range level {
			if seen[parent.typ] {
				continue
			}
			seen[parent.typ] = true
			for i := range parent.typ.NumField() {
				c, inner := candidateOf(parent, parent.typ.Field(i))
				switch {
				case inner != nil:
					for _, other := range below {
						if other.typ == inner.typ {
							return nil, false
						}
					}
					below = append(below, *inner)
				case c.name != "":
					c.depth = depth
					found = append(found, c)
				}
			}
		}
		level = below
	}
	return found, true
}

// candidateOf reads one field of parent: it has a name, or embeds a struct, or
// is not for JSON.
func candidateOf(parent embedded, f reflect.StructField) (c candidate, inner *embedded) {
	base := f.Type
	if base.Kind() == reflect.Pointer && base.Name() == "" {
		base = base.Elem()
	}
	isStruct := base.Kind() == reflect.Struct
	if !f.IsExported() && !(f.Anonymous && isStruct) {
		return c, nil
	}
	tag := f.Tag.Get("json")
	if tag == "-" {
		return c, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validTagName(name) {
		name = ""
	}
	if name == "" && f.Anonymous && isStruct {
		e := embedded{typ: base, offset: parent.offset + f.Offset, hops: parent.hops, irregular: parent.irregular}
		if f.Type.Kind() == reflect.Pointer {
			e.hops = append(e.hops[:len(e.hops):len(e.hops)], hop{e.offset, base})
			e.offset = 0
			e.irregular = e.irregular || !f.IsExported() // the stock decoder cannot set it
		}
		return c, &e
	}
	c = candidate{name: name, tagged: name != "", field: f, offset: parent.offset + f.Offset, hops: parent.hops}
	if name == "" {
		c.name = f.Name
	}
	c.irregular = parent.irregular || !f.IsExported()
	for option := range strings.SplitSeq(options, ",") {
		if option == "string" {
			switch k := base.Kind(); {
			case k >= reflect.Bool && k <= reflect.Float64, k == reflect.String:
				c.quoted = true
				c.irregular = c.irregular || base != f.Type || k == reflect.String
			}
		}
	}
	return c, nil
}

// validTagName says whether a tag's name counts; if not, the field keeps its Go
// name.
func validTagName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return name != ""
}

// choose gives each name to one candidate: the shallowest, and among these the
// tagged one. A name with two candidates left is dropped.
func choose(all []candidate) []candidate {
	better := func(a, b candidate) bool {
		return a.depth < b.depth || a.depth == b.depth && a.tagged && !b.tagged
	}
	var chosen []candidate
next:
	for i, c := range all {
		for j, other := range all {
			if i != j && c.name == other.name && !better(c, other) {
				continue next
			}
		}
		chosen = append(chosen, c)
	}
	return chosen
}
