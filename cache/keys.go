package cache

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MetaNamespaceKeyFunc keys an API object by "namespace/name", or by "name" if it
// has no namespace. An [ExplicitKey] is its own key.
func MetaNamespaceKeyFunc(obj any) (string, error) {
	if key, ok := obj.(ExplicitKey); ok {
		return string(key), nil
	}
	name, err := ObjectToName(obj)
	return name.String(), err
}

// DeletionHandlingMetaNamespaceKeyFunc is [MetaNamespaceKeyFunc] for what a delete
// handler receives: a [DeletedFinalStateUnknown] carries its key.
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	if gone, ok := obj.(DeletedFinalStateUnknown); ok {
		return gone.Key, nil
	}
	return MetaNamespaceKeyFunc(obj)
}

// SplitMetaNamespaceKey takes a key of [MetaNamespaceKeyFunc] apart.
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	before, after, found := strings.Cut(key, "/")
	if !found {
		return "", key, nil
	}
	if strings.Contains(after, "/") {
		// The whole text is client-go's: programs compare it.
		return "", "", fmt.Errorf("unexpected key format: %q", key)
	}
	return before, after, nil
}

// NewObjectName joins a namespace, which may be empty, and a name.
func NewObjectName(namespace, name string) ObjectName {
	return ObjectName{Namespace: namespace, Name: name}
}

// ParseObjectName reads what [ObjectName.String] wrote.
func ParseObjectName(str string) (ObjectName, error) {
	namespace, name, err := SplitMetaNamespaceKey(str)
	return NewObjectName(namespace, name), err
}

// NamespacedNameAsObjectName converts between the two structs of one meaning.
func NamespacedNameAsObjectName(nn types.NamespacedName) ObjectName {
	return ObjectName(nn)
}

// MetaObjectToName gives an object's name.
func MetaObjectToName(obj metav1.Object) ObjectName {
	return NewObjectName(obj.GetNamespace(), obj.GetName())
}

// ObjectToName gives an object's name; it fails for what has no metadata.
func ObjectToName(obj any) (ObjectName, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ObjectName{}, noMeta(obj, err)
	}
	return MetaObjectToName(accessor), nil
}

// DeletionHandlingObjectToName is [ObjectToName] for what a delete handler receives.
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	if gone, ok := obj.(DeletedFinalStateUnknown); ok {
		return ParseObjectName(gone.Key)
	}
	return ObjectToName(obj)
}

// MetaNamespaceIndexFunc indexes objects by their namespace.
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return []string{""}, noMeta(obj, err)
	}
	return []string{accessor.GetNamespace()}, nil
}

func noMeta(obj any, err error) error {
	return fmt.Errorf("object has no meta: %w (it is a %T)", err, obj)
}

// IndexFuncToKeyFuncAdapter makes a key function of an index function that gives
// exactly one value for each object.
func IndexFuncToKeyFuncAdapter(indexFunc IndexFunc) KeyFunc {
	return func(obj any) (string, error) {
		values, err := indexFunc(obj)
		switch {
		case err != nil:
			return "", err
		case len(values) == 0:
			return "", fmt.Errorf("unexpected empty indexKeys: a key needs one value, the index function gave none for a %T", obj)
		case len(values) > 1:
			return "", fmt.Errorf("too many keys: %v: a key needs one value", values)
		}
		return values[0], nil
	}
}
