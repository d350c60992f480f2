package wire

import "reflect"

// tooDeep says whether messages or groups in raw lie more than limit levels in each
// other. It guards the stock decoder, which follows them with the stack; it sees what
// that one would see before it finds something malformed.
func (n *protoNode) tooDeep(raw []byte, limit int) bool {
	_, deep := n.survey(raw, limit)
	return deep
}

// survey walks through a message. It ends with ok false where the stock decoder
// would give up.
func (n *protoNode) survey(b []byte, limit int) (ok, deep bool) {
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
		if i = protoSkip(b, next, wireType); i < 0 {
			return false, false
		}
		if groups == 0 && wireType == wireBytes && number < uint64(len(n.fields)) {
			start, _ := protoSpan(b, next)
			if ok, deep = n.fields[number].survey(b[start:i], limit); !ok {
				return false, deep
			}
		}
	}
	return true, false
}

// survey walks through the message in a field, or in the value of a map's entry.
func (f *protoField) survey(b []byte, limit int) (ok, deep bool) {
	if f.kind == kindUnknown || f.message == nil {
		return true, false
	}
	child := f.child()
	if f.kind != kindMessageMap && f.kind != kindQuantityMap {
		return child.survey(b, limit-1)
	}
	for i := 0; i < len(b); {
		tag, next := varint(b, i)
		if next < 0 {
			return false, false
		}
		start, end := protoSpan(b, next)
		if tag>>3 == 2 && end >= 0 {
			if ok, deep = child.survey(b[start:end], limit-1); !ok {
				return false, deep
			}
		}
		if i = protoSkip(b, next, uint8(tag&7)); i < 0 {
			return false, false
		}
	}
	return true, false
}

// tooDeepHere says whether a part that was found would lie too deep where it is to
// be used: it may have been made for a place further up. Its bytes tell, and for
// types without themselves within, and short ones, there is no need to ask.
func (r *protoReader) tooDeepHere(f *protoField, i, end int) bool {
	if f.message == nil || r.depth+(end-i)/2 < maxProtoDepth || !f.child().endless {
		return false
	}
	limit := maxProtoDepth + 1 - r.depth
	if f.kind == kindPtrMessage || f.kind == kindMessage {
		_, deep := f.survey(r.data[i:end], limit)
		return deep
	}
	for i < end {
		start, next := protoSpan(r.data[:end], i+int(f.tagSize))
		if _, deep := f.survey(r.data[start:next], limit); deep {
			return true
		}
		i = next
	}
	return false
}

// endless says whether messages of a type can lie in each other without end.
func endless(t reflect.Type, above, known map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return endless(t.Elem(), above, known)
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
		if endless(t.Field(i).Type, above, known) {
			return true
		}
	}
	return false
}
