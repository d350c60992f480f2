package query

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tarnproject/tarn/fieldpath"
)

// parseSelector reads a selector in Kubernetes' syntax:
//
//	a=b, c==d, e!=f, g in (h,i), j notin (k), l, !m, n>5, o<7
//
// field makes the path that a name stands for. Fields are paths; a name ends only
// outside of brackets. missing says that an empty value also stands for no value,
// as in field selectors and unlike in label selectors.
//
// Why not the parsers of apimachinery: the one for fields knows only = and !=, the
// one for labels takes no paths. FuzzSelector compares this one with them.
func parseSelector(text string, field func(name string) Field, missing bool) ([]Condition, error) {
	r := selectorReader{text: text}
	var conditions []Condition
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("selector %q: it has a NUL byte, which no name and no value has", text)
	}
	if r.peek() == "" {
		return nil, nil
	}
	for {
		c, err := r.condition(field, missing)
		if err == nil && c.err != nil {
			err = c.err
		}
		if err != nil {
			return nil, fmt.Errorf("selector %q: %w", text, err)
		}
		conditions = append(conditions, c)
		switch token := r.next(); token {
		case "":
			return conditions, nil
		case ",":
		default:
			return nil, fmt.Errorf("selector %q: expected a comma before %q", text, token)
		}
	}
}

type selectorReader struct {
	text string
	at   int
}

const selectorMarks = "=!<>(),"

// next reads a name or value, or an operator; "" at the end.
func (r *selectorReader) next() string {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
	start := r.at
	if start == len(r.text) {
		return ""
	}
	if strings.IndexByte(selectorMarks, r.text[start]) >= 0 {
		r.at++
		if two := r.text[start:min(start+2, len(r.text))]; two == "==" || two == "!=" || two == ">=" || two == "<=" {
			r.at++
		}
		return r.text[start:r.at]
	}
	r.at += fieldpath.End(r.text[start:], " \t\r\n"+selectorMarks)
	return r.text[start:r.at]
}

func (r *selectorReader) peek() string {
	at := r.at
	token := r.next()
	r.at = at
	return token
}

func isMark(token string) bool { return token != "" && strings.Contains(selectorMarks, token[:1]) }

func (r *selectorReader) condition(field func(string) Field, missing bool) (Condition, error) {
	name := r.next()
	absent := name == "!"
	if absent {
		name = r.next()
	}
	if name == "" || isMark(name) {
		return Condition{}, fmt.Errorf("expected a name, not %q", name)
	}
	f := field(name)
	if absent {
		return f.Missing(), nil
	}
	switch operator := r.peek(); operator {
	case "", ",":
		return f.Exists(), nil
	case "=", "==", "!=":
		r.next()
		value := r.value()
		return f.textCondition(operator == "!=", missing, value), nil
	case "in", "notin":
		r.next()
		values, err := r.list()
		return f.textCondition(operator == "notin", missing, values...), err
	case ">", "<", ">=", "<=":
		r.next()
		return f.bound(operator, r.value())
	default:
		return Condition{}, fmt.Errorf("expected an operator (=, !=, in, notin, >, <) after %q, not %q", name, operator)
	}
}

// value reads a value, which may be empty.
func (r *selectorReader) value() string {
	if token := r.peek(); token == "" || isMark(token) {
		return ""
	}
	return r.next()
}

func (r *selectorReader) list() ([]string, error) {
	if token := r.next(); token != "(" {
		return nil, fmt.Errorf("expected a list in parentheses, not %q", token)
	}
	var values []string
	for {
		values = append(values, r.value())
		switch token := r.next(); token {
		case ")":
			return values, nil
		case ",":
		default:
			return nil, fmt.Errorf("expected a comma or ) in a list, not %q", token)
		}
	}
}

// textCondition requires a field to have, or not to have, a value with one of these
// texts.
func (f Field) textCondition(not, missing bool, texts ...string) Condition {
	c := f.condition(isOneOf)
	if not {
		c.test = isNoneOf
	}
	for _, text := range texts {
		c.values = append(c.values, fieldpath.ValuesOfText(text)...)
		if text == "" && missing {
			c.values = append(c.values, fieldpath.Value{})
		}
	}
	c.order()
	return c
}

func (f Field) bound(operator, text string) (Condition, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Condition{}, fmt.Errorf("%s needs a number, not %q", operator, text)
	}
	c := f.condition(isAbove, n)
	switch operator {
	case "<":
		c.test = isBelowNumber
	case ">=":
		c.test = isAtLeastNumber
	case "<=":
		c.test = isAtMost
	}
	return c, nil
}
