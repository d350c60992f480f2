package kube

import (
	"bytes"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tarnproject/tarn/internal/jsonend"
)

// readJSONList cuts a JSON list: an object whose fields may come in any order, with
// an array of objects under "items". It holds only one item at a time, and the few
// other fields of a list.
func readJSONList(f *bodyBuffer, limit int, t itemSink) (head listHead, err error) {
	fields, kept := map[string]json.RawMessage{}, 0
	err = f.jsonMembers(func(name string) error {
		if name == "items" {
			if head.items {
				return f.malformed(`the field "items" is there twice`)
			}
			head.items = true
			return f.jsonItems(limit, t)
		}
		if !headFields[name] {
			size, err := f.skipJSON(jsonend.Scan{})
			if err == nil && size == 0 {
				err = f.malformed("a value is missing")
			}
			return err
		}
		s, tooLong, err := f.jsonValue(maxHead - kept)
		switch {
		case err != nil:
			return err
		case s.Pos == 0:
			return f.malformed("a value is missing")
		case tooLong:
			_, err = f.skipJSON(s)
			return err
		}
		kept += s.Pos
		fields[name] = bytes.Clone(f.take(s.Pos))
		return nil
	})
	if err != nil {
		return head, err
	}
	switch _, err := f.jsonToken(); {
	case err == nil:
		return head, f.malformed("something follows the list")
	case err != io.EOF:
		return head, err
	}
	for name, into := range map[string]any{"kind": &head.Kind, "apiVersion": &head.APIVersion, "metadata": &head.ListMeta} {
		if raw, ok := fields[name]; ok {
			if err := utiljson.Unmarshal(raw, into); err != nil {
				return head, f.malformed("the field %q cannot be read: %v", name, err)
			}
		}
	}
	head.shard = jsonEcho(fields["metadata"])
	if head.Kind == "Status" {
		head.status = statusOf(fields)
	}
	return head, nil
}

// headFields are the fields to keep: those of a list and of a Status.
var headFields = map[string]bool{
	"kind": true, "apiVersion": true, "metadata": true,
	"status": true, "message": true, "reason": true, "details": true, "code": true,
}

// statusOf assembles a Status from its fields.
func statusOf(fields map[string]json.RawMessage) *metav1.Status {
	status := &metav1.Status{}
	if raw, err := json.Marshal(fields); err == nil {
		_ = utiljson.Unmarshal(raw, status) // unreadable fields stay empty
	}
	return status
}

// jsonMembers reads an object. It calls member when the window begins with the
// value of a field; member must consume the value.
func (f *bodyBuffer) jsonMembers(member func(name string) error) error {
	if c, err := f.jsonToken(); err != nil {
		return unexpected(err)
	} else if c != '{' {
		return f.malformed("%q instead of an object", c)
	}
	f.at++
	for first := true; ; first = false {
		more, err := f.jsonMore('}', first)
		if err != nil || !more {
			return err
		}
		if f.window()[0] != '"' {
			return f.malformed("%q instead of a field's name", f.window()[0])
		}
		s, tooLong, err := f.jsonValue(maxHead)
		if err != nil {
			return err
		}
		var name string
		if tooLong || json.Unmarshal(f.window()[:s.Pos], &name) != nil {
			return f.malformed("a field's name cannot be read")
		}
		f.at += s.Pos
		if c, err := f.jsonToken(); err != nil {
			return unexpected(err)
		} else if c != ':' {
			return f.malformed("%q instead of a colon", c)
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

// jsonMore moves to the next element. It returns false at the end, which it
// consumes.
func (f *bodyBuffer) jsonMore(end byte, first bool) (bool, error) {
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
		return false, f.malformed("%q instead of a comma", c)
	}
	f.at++
	if c, err = f.jsonToken(); err != nil {
		return false, unexpected(err)
	}
	if c == end {
		return false, f.malformed("nothing follows a comma")
	}
	return true, nil
}

// jsonItems reads the items. null means an empty list.
func (f *bodyBuffer) jsonItems(limit int, t itemSink) error {
	if c := f.window()[0]; c != '[' {
		s, _, err := f.jsonValue(excerptSize)
		if err == nil && string(f.window()[:s.Pos]) != "null" {
			err = f.malformed(`the field "items" is not an array`)
		}
		f.at += s.Pos
		return err
	}
	f.at++
	for first := true; ; first = false {
		more, err := f.jsonMore(']', first)
		if err != nil || !more {
			return err
		}
		if seen, foreign := t.foreignStart(f.window()); foreign {
			f.at += seen
			if _, err := f.skipJSON(jsonend.Within(2)); err != nil {
				return err
			}
			continue
		}
		at := f.offset()
		s, tooLong, err := f.jsonValue(limit)
		switch {
		case err != nil:
			return err
		case tooLong:
			start := bytes.Clone(f.window()[:min(excerptSize, f.end-f.at)])
			size, err := f.skipJSON(s)
			if err != nil {
				return err
			}
			t.tooLong(start, size, at)
		case s.Pos == 0:
			return f.malformed("an item is missing")
		default:
			t.item(f, s.Pos)
		}
	}
}
