package protobuf

import "reflect"

// tooDeep says whether messages or groups in raw are nested more than limit levels
// deep. It guards the stock decoder, which recurses into them, and sees what the
// stock decoder would see before it finds something malformed.
func (n *node) tooDeep(raw []byte, limit int) bool {
	_, deep := n.checkDepth(raw, limit)
	return deep
}

// checkDepth walks through a message. It ends with ok false where the stock decoder
// would fail.
func (n *node) checkDepth(b []byte, limit int) (ok, deep bool) {
	if limit == 0 {
		return false, true
	}
	groups := 0
	for i := 0; i < len(b); {
		tag, next := varint(b, i)
		if next < 0 {
			return false, false
		}
		number, wireType := tag>>3, uint8(tag&7)
		switch wireType {
		case 3:
			if groups++; groups > limit {
				return false, true
			}
			i = next
			continue
		case 4:
			groups--
			i = next
			continue
		}
		if i = skip(b, next, wireType); i < 0 {
			return false, false
		}
		if groups == 0 && wireType == wireBytes && number < uint64(len(n.fields)) {
			start, _ := span(b, next)
			if ok, deep = n.fields[number].checkDepth(b[start:i], limit); !ok {
				return false, deep
			}
		}
	}
	return true, false
}

// checkDepth walks through the message in a field, or in the value of a map's
// entry.
func (f *field) checkDepth(b []byte, limit int) (ok, deep bool) {
	if f.kind == kindUnknown || f.message == nil {
		return true, false
	}
	child := f.child()
	if f.kind != kindMessageMap && f.kind != kindQuantityMap {
		return child.checkDepth(b, limit-1)
	}
	for i := 0; i < len(b); {
		tag, next := varint(b, i)
		if next < 0 {
			return false, false
		}
		start, end := span(b, next)
		if tag>>3 == 2 && end >= 0 {
			if ok, deep = child.checkDepth(b[start:end], limit-1); !ok {
				return false, deep
			}
		}
		if i = skip(b, next, uint8(tag&7)); i < 0 {
			return false, false
		}
	}
	return true, false
}

// tooDeepHere says whether a found part would be nested too deep in its new place:
// it may have been made for a place further up. It reads the part's bytes, except
// for types that do not contain themselves and for short parts, which cannot be too
// deep.
func (r *reader) tooDeepHere(f *field, i, end int) bool {
	if f.message == nil || r.depth+(end-i)/2 < maxDepth || !f.child().recursive {
		return false
	}
	limit := maxDepth + 1 - r.depth
	if f.kind == kindPtrMessage || f.kind == kindMessage {
		_, deep := f.checkDepth(r.data[i:end], limit)
		return deep
	}
	for i < end {
		start, next := span(r.data[:end], i+int(f.tagSize))
		if _, deep := f.checkDepth(r.data[start:next], limit); deep {
			return true
		}
		i = next
	}
	return false
}

// recursive says whether messages of a type can be nested without end.
func recursive(t reflect.Type, above, known map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return recursive(t.Elem(), above, known)
	case reflect.Struct:
	default:
		return false
	}
	if above[t] || known[t] {
		return above[t]
	}
	above[t] = true
	defer func() { above[t], known[t] = false, true }()
	for i := range t.NumField() {
		if recursive(t.Field(i).Type, above, known) {
			return true
		}
	}
	return false
}
