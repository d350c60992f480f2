package ondisk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

func init() { sqlite.RegisterRenderer(rendererOf) }

// UID tells an object from one that was created later under the same key.
func (c *codec[T]) UID(object T) string {
	if o, ok := any(object).(metav1.Object); ok {
		return string(o.GetUID())
	}
	return ""
}

// rendererOf returns the renderer of a collection that this package wrote: for SQL that
// shows whole objects of the past, also in a program that does not know their Go types.
// Objects of types that are not of Kubernetes itself can be shown if they were kept
// unstructured.
func rendererOf(h sqlite.Holding) sqlite.Renderer {
	var gv, how, typeName string
	words := strings.Fields(h.Schema)
	if n := len(words); n >= 4 && words[n-2] == "as" {
		gv, how, typeName = words[0], words[1], words[n-1]
	}
	groupVersion, err := schema.ParseGroupVersion(gv)
	if err != nil || how != "json" && how != "protobuf" {
		return nil
	}
	if typeName == unstructuredType.String() && how == "json" {
		return unstructuredRenderer(h)
	}
	of := kube.Origin{Resource: groupVersion.WithResource(strings.Split(h.Identity, ".")[0])}
	if typeName == metadataType.String() {
		of.Object = metadataType
		of.Kind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	for kind, t := range scheme.Scheme.KnownTypes(groupVersion) {
		if p := reflect.PointerTo(t); p.String() == typeName && p.Implements(reflect.TypeFor[metav1.Object]()) && of.Object == nil {
			of.Object, of.Kind = p, groupVersion.WithKind(kind)
		}
	}
	if of.Object == nil {
		return nil
	}
	wide := wideFieldsOf(of, how == "protobuf")
	wide.unsummed = true
	decode := func(raw []byte) (map[string]sqlite.JSON, error) {
		object := reflect.New(of.Object.Elem()).Interface()
		if err := unmarshal(raw, object, wide.protobuf); err != nil {
			return nil, err
		}
		var row sqlite.Row
		if err := wide.add(&row, object.(metav1.Object), raw); err != nil {
			return nil, err
		}
		return partsOf(row)
	}
	coders := partCoders(of.Object.Elem(), wide.fields)
	if !wide.protobuf || coders == nil {
		return decode
	}
	return func(raw []byte) (map[string]sqlite.JSON, error) {
		coder := coders.Get().(*partCoder)
		defer coders.Put(coder)
		if parts, err := coder.render(raw); err == nil {
			return parts, nil
		}
		return decode(raw)
	}
}

func unmarshal(raw []byte, object any, protobuf bool) error {
	if !protobuf {
		return json.Unmarshal(raw, object)
	}
	m, ok := object.(interface{ Unmarshal([]byte) error })
	if !ok {
		return fmt.Errorf("a %T cannot be read from protobuf", object)
	}
	return m.Unmarshal(raw)
}

// unstructuredRenderer cuts the parts out of JSON.
func unstructuredRenderer(h sqlite.Holding) sqlite.Renderer {
	wide := wideFields{}
	if strings.Contains(h.Tables, `,"kind":"`) || strings.Contains(h.Tables, `{"kind":"`) {
		wide.kind = "known" // the view has it
	}
	return func(raw []byte) (map[string]sqlite.JSON, error) {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &u.Object); err != nil {
			return nil, err
		}
		var row sqlite.Row
		if err := wide.addUnstructured(&row, u, raw); err != nil {
			return nil, err
		}
		return partsOf(row)
	}
}

// partsOf are the values of the wide columns by name.
func partsOf(row sqlite.Row) (map[string]sqlite.JSON, error) {
	parts := map[string]sqlite.JSON{}
	for i, name := range []string{"object_metadata", "object_spec", "object_status", "object_rest"} {
		if w, ok := row.Values[i].(sqlite.WideValue); ok && w.Make != nil {
			value, err := w.Make()
			if err != nil {
				continue // SQL shows NULL
			}
			parts[name] = value
		}
	}
	return parts, nil
}
