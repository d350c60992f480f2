package jsonend

// model is what a Scan must find, by a loop over bytes.
type model struct {
	pos, depth, children, open, close int
	inString, escaped, ended          bool
}

func (m *model) scan(data []byte) bool {
	if len(data) == 0 || m.ended {
		return m.ended
	}
	first := data[0]
	for ; m.pos < len(data); m.pos++ {
		c := data[m.pos]
		switch {
		case first != '{' && first != '[' && first != '"':
			if ends[c] {
				m.ended = true
				return true
			}
			continue
		case m.escaped:
			m.escaped = false
		case m.inString && c == '\\':
			m.escaped = true
		case c == '"':
			m.inString = !m.inString
		case m.inString:
		case c == '{' || c == '[':
			m.depth++
			if m.depth == 2 {
				m.children++
				if m.children == 1 {
					m.open = m.pos
				}
			}
		case c == '}' || c == ']':
			m.depth--
			if m.depth == 1 && m.children == 1 {
				m.close = m.pos + 1
			}
		}
		if m.depth == 0 && !m.inString {
			m.ended = true
			m.pos++
			return true
		}
	}
	return false
}
