package kube

import (
	"bytes"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// readJSONList cuts a JSON list: an object whose fields may come in any order, of
// which "items" is an array of objects. Only one item at a time, and what is not
// an item but says something about them, is ever held.
func readJSONList(f *feed, limit int, t listTaker) (head listHead, err error) {
	fields, kept := map[string]json.RawMessage{}, 0
	err = f.jsonMembers(func(name string) error {
		if name == "items" {
			if head.items {
				return f.garbled(`the field "items" is there twice`)
			}
			head.items = true
			return f.jsonItems(limit, t)
		}
		if !headFields[name] {
			size, err := f.skipJSON(jsonScan{})
			if err == nil && size == 0 {
				err = f.garbled("a value is missing")
			}
			return err
		}
		s, tooLong, err := f.jsonValue(maxHead - kept)
		switch {
		case err != nil:
			return err
		case s.pos == 0:
			return f.garbled("a value is missing")
		case tooLong:
			_, err = f.skipJSON(s)
			return err
		}
		kept += s.pos
		fields[name] = bytes.Clone(f.take(s.pos))
		return nil
	})
	if err != nil {
		return head, err
	}
	switch _, err := f.jsonToken(); {
	case err == nil:
		return head, f.garbled("something follows the list")
	case err != io.EOF:
		return head, err
	}
	for name, into := range map[string]any{"kind": &head.Kind, "apiVersion": &head.APIVersion, "metadata": &head.ListMeta} {
		if raw, ok := fields[name]; ok {
			if err := utiljson.Unmarshal(raw, into); err != nil {
				return head, f.garbled("the field %q cannot be read: %v", name, err)
			}
		}
	}
	if head.Kind == "Status" {
		head.status = statusOf(fields)
	}
	return head, nil
}

// headFields are the fields that are kept: those of a list and of a Status.
var headFields = map[string]bool{
	"kind": true, "apiVersion": true, "metadata": true,
	"status": true, "message": true, "reason": true, "details": true, "code": true,
}

// statusOf puts a Status together again.
func statusOf(fields map[string]json.RawMessage) *metav1.Status {
	status := &metav1.Status{}
	if raw, err := json.Marshal(fields); err == nil {
		_ = utiljson.Unmarshal(raw, status) // what cannot be read is not said
	}
	return status
}

// jsonMembers reads an object and calls member when the window begins with the
// value of a field, which it must consume.
func (f *feed) jsonMembers(member func(name string) error) error {
	if c, err := f.jsonToken(); err != nil {
		return unexpected(err)
	} else if c != '{' {
		return f.garbled("%q instead of an object", c)
	}
	f.at++
	for first := true; ; first = false {
		more, err := f.jsonMore('}', first)
		if err != nil || !more {
			return err
		}
		if f.window()[0] != '"' {
			return f.garbled("%q instead of a field's name", f.window()[0])
		}
		s, tooLong, err := f.jsonValue(maxHead)
		if err != nil {
			return err
		}
		var name string
		if tooLong || json.Unmarshal(f.window()[:s.pos], &name) != nil {
			return f.garbled("a field's name cannot be read")
		}
		f.at += s.pos
		if c, err := f.jsonToken(); err != nil {
			return unexpected(err)
		} else if c != ':' {
			return f.garbled("%q instead of a colon", c)
		}
		f.at++
		if _, err := f.jsonToken(); err != nil {
			return unexpected(err)
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

// jsonMore goes on to the next element, or consumes the end and says no.
func (f *feed) jsonMore(end byte, first bool) (bool, error) {
	c, err := f.jsonToken()
	if err != nil {
		return false, unexpected(err)
	}
	if c == end {
		f.at++
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, f.garbled("%q instead of a comma", c)
	}
	f.at++
	if c, err = f.jsonToken(); err != nil {
		return false, unexpected(err)
	}
	if c == end {
		return false, f.garbled("nothing follows a comma")
	}
	return true, nil
}

// jsonItems reads the items. null means none.
func (f *feed) jsonItems(limit int, t listTaker) error {
	if c := f.window()[0]; c != '[' {
		s, _, err := f.jsonValue(peekSize)
		if err == nil && string(f.window()[:s.pos]) != "null" {
			err = f.garbled(`the field "items" is not an array`)
		}
		f.at += s.pos
		return err
	}
	f.at++
	for first := true; ; first = false {
		more, err := f.jsonMore(']', first)
		if err != nil || !more {
			return err
		}
		at := f.offset()
		s, tooLong, err := f.jsonValue(limit)
		switch {
		case err != nil:
			return err
		case tooLong:
			start := bytes.Clone(f.window()[:min(peekSize, f.end-f.at)])
			size, err := f.skipJSON(s)
			if err != nil {
				return err
			}
			t.tooLong(start, size, at)
		case s.pos == 0:
			return f.garbled("an item is missing")
		default:
			t.item(f, s.pos)
		}
	}
}
