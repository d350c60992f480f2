package wire

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
