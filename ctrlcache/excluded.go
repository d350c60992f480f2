package ctrlcache

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// never says that the informer's selectors or its shard exclude the written object: no event will
// show it. An object that is in the copy will get a delete event.
func (p *scopedInformer) never(key client.ObjectKey, m mark) bool {
	if !p.selectsKey(key) {
		return true
	}
	return p.excludes(key, m) && p.held(key) == nil
}

// excludes says that what was written is not selected by the informer's labels or fields, or is
// not of its shard.
func (p *scopedInformer) excludes(key client.ObjectKey, m mark) bool {
	if s := p.config.LabelSelector; m.omitted[p.form] || s != nil && m.known && !s.Matches(m.labels) {
		return true
	}
	return p.sharding != nil && m.uid != "" && !p.sharding.Wanted().Has(key.Namespace, string(m.uid))
}

// selectsKey says whether the informer's field selector lets through an object with this
// key, whatever its other fields.
func (p *scopedInformer) selectsKey(key client.ObjectKey) bool {
	if p.config.FieldSelector == nil {
		return true
	}
	for _, r := range p.config.FieldSelector.Requirements() {
		value := key.Name
		switch {
		case r.Field == namespaceField && p.namespaced:
			value = key.Namespace
		case r.Field != nameField:
			continue
		}
		if equal(r) && value != r.Value || r.Operator == selection.NotEquals && value == r.Value {
			return false
		}
	}
	return true
}

// omits says that the informer's field selector does not select an object. It is false if that
// does not follow from the object. The object is the answer to a write. Nothing is left of what
// the caller had in it before: controller-runtime clears an object before it decodes an answer
// into it, and an apply configuration is without what was sent; see remove.
func (p *scopedInformer) omits(object client.Object) bool {
	if p.config.FieldSelector == nil || object == nil {
		return false
	}
	for _, r := range p.config.FieldSelector.Requirements() {
		value, known := selectable(object, r.Field)
		if known && (equal(r) && value != r.Value || r.Operator == selection.NotEquals && value == r.Value) {
			return true
		}
	}
	return false
}

// selectable is the value by which the server selects an object, if the object tells. Fields
// that are false, zero, or left out are text to some servers and no value to others.
func selectable(object client.Object, path string) (value string, known bool) {
	var err error
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		return "", false
	case *unstructured.Unstructured:
		value, err = textAt(o.Object, path)
		known = value != ""
	default:
		way, unknown := compile(reflect.TypeOf(o), path)
		if unknown != nil {
			return "", false
		}
		value, err = way.read(reflect.ValueOf(o))
		known = true
	}
	return value, known && err == nil && value != "false" && value != "0"
}
