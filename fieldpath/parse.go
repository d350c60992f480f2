package fieldpath

import (
	"fmt"
	"strings"
)

// maxSteps bounds the depth of a path. No object is that deep; a user's path that
// is deeper is a mistake.
const maxSteps = 100

// Parse reads a path: names with dots between them, and in brackets a key, a
// list element or * for all elements. A key may be quoted with ' or ", and then
// hold anything, a backslash before a quote or a backslash. A dot in front is
// allowed, as kubectl writes it.
func Parse(text string) (*Path, error) {
	r := pathReader{text: text}
	r.skip('.')
	var steps []step
	for first := true; first || !r.done(); first = false {
		s, err := r.step(first)
		if err != nil {
			return nil, fmt.Errorf("field path %q: %w", text, err)
		}
		steps = append(steps, s)
		if len(steps) > maxSteps {
			return nil, fmt.Errorf("field path %q: more than %d steps deep", text[:min(len(text), 80)], maxSteps)
		}
	}
	return newPath(steps), nil
}

type pathReader struct {
	text string
	at   int
}

func (r *pathReader) done() bool { return r.at == len(r.text) }

func (r *pathReader) skip(c byte) bool {
	if r.done() || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *pathReader) step(first bool) (step, error) {
	if r.skip('[') {
		return r.bracket()
	}
	if !first && !r.skip('.') {
		return step{}, fmt.Errorf("expected a dot or [ at %q", r.text[r.at:])
	}
	rest := r.text[r.at:]
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	name := rest[:end]
	if name == "" {
		return step{}, fmt.Errorf("a name is missing at position %d", r.at+1)
	}
	if !plainName(name) {
		return step{}, fmt.Errorf("the name %q needs brackets and quotes: ['%s']", name, quoting.Replace(name))
	}
	r.at += end
	return step{name: name, index: -1}, nil
}

func (r *pathReader) bracket() (step, error) {
	if !r.done() && (r.text[r.at] == '\'' || r.text[r.at] == '"') {
		name, err := r.quoted()
		if err != nil {
			return step{}, err
		}
		if !r.skip(']') {
			return step{}, fmt.Errorf("a ] is missing after the quoted key %q", name)
		}
		return step{name: name, index: -1}, nil
	}
	rest := r.text[r.at:]
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return step{}, fmt.Errorf("the bracket at position %d is not closed", r.at)
	}
	name := rest[:end]
	r.at += end + 1
	if name == "*" {
		return step{index: -1, all: true}, nil
	}
	if element := elementOf(name); element >= 0 {
		return step{name: name, index: element}, nil
	}
	if !plainKey(name) {
		return step{}, fmt.Errorf("the key %q needs quotes: ['%s']", name, quoting.Replace(name))
	}
	return step{name: name, index: -1}, nil
}

func (r *pathReader) quoted() (string, error) {
	quote := r.text[r.at]
	var b strings.Builder
	for i := r.at + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == quote:
			r.at = i + 1
			return b.String(), nil
		case c == '\\' && i+1 < len(r.text):
			i++
			b.WriteByte(r.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the quote at position %d is not closed", r.at+1)
}
