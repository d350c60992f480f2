package apiserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Objects that came from another server are kept byte by byte: that server may be newer
// than the types that this program was built with, and their fields must not be lost.

// NewObject makes an object of what another server sent: the bare protobuf message, or
// JSON if the resource is a custom one. The bytes must not be changed afterwards.
func (r *Resource) NewObject(raw []byte) (*Object, error) {
	if r.Custom() {
		return r.newCustom(raw)
	}
	var part metav1.PartialObjectMetadata
	if err := part.Unmarshal(raw); err != nil {
		return nil, err
	}
	if part.Name == "" {
		return nil, errors.New("the object has no name")
	}
	e := &Object{in: r.endpoint.stored, key: joinKey(part.Namespace, part.Name), raw: raw, uid: part.UID}
	if len(part.Labels) > 0 {
		e.labels = labels.Set(part.Labels)
	}
	return e.at(part.ResourceVersion)
}

// at sets the version of a new object.
func (e *Object) at(text string) (*Object, error) {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return e, fmt.Errorf("its resourceVersion %q is not a number; such objects cannot be served", text)
	}
	e.version = version
	return e, nil
}

// withVersion returns the same object with another version.
func (e *Object) withVersion(version int64) (*Object, error) {
	later := &Object{in: e.in, key: e.key, version: version, uid: e.uid, labels: e.labels}
	later.setFields(e.fieldSet())
	if !e.in.custom {
		raw, err := replaceVersion(e.raw, versionText(version))
		later.raw = raw
		return later, err
	}
	object, err := e.object()
	if err != nil {
		return nil, err
	}
	accessor(object).SetResourceVersion(versionText(version))
	later.raw, err = encodeJSON(object)
	return later, err
}

// The numbers of the metadata of an object, and of its version in there, in protobuf.
const (
	metadataField = 1
	versionField  = 6
)

// replaceVersion rewrites the version in a protobuf message, and nothing else.
func replaceVersion(raw []byte, version string) ([]byte, error) {
	return replaceField(raw, metadataField, func(metadata []byte) ([]byte, error) {
		return replaceField(metadata, versionField, func([]byte) ([]byte, error) { return []byte(version), nil })
	})
}

// replaceField rewrites the first field of that number.
func replaceField(message []byte, number int, change func(value []byte) ([]byte, error)) ([]byte, error) {
	for rest := message; len(rest) > 0; {
		at := len(message) - len(rest)
		tag, n := binary.Uvarint(rest)
		if n <= 0 {
			break
		}
		size, length := 0, 0
		switch tag & 7 {
		case 0:
			_, size = binary.Uvarint(rest[n:])
		case 1:
			size = 8
		case 5:
			size = 4
		case lengthDelimited:
			value, m := binary.Uvarint(rest[n:])
			if m <= 0 || value > uint64(len(rest)-n-m) {
				return nil, errMalformed
			}
			size, length = m+int(value), m
		}
		if size <= 0 || size > len(rest)-n {
			break
		}
		value := rest[n+length : n+size]
		rest = rest[n+size:]
		if tag != uint64(number<<3|lengthDelimited) {
			continue
		}
		changed, err := change(value)
		if err != nil {
			return nil, err
		}
		out := make([]byte, 0, len(message)+len(changed)-len(value)+4)
		out = append(out, message[:at]...)
		out = append(appendHead(out, number, len(changed)), changed...)
		return append(out, rest...), nil
	}
	return nil, errMalformed
}

var errMalformed = errors.New("a protobuf object is malformed, or has no version")
