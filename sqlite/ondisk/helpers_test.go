package ondisk

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func collectionType[T any]() reflect.Type { return reflect.TypeFor[T]() }

func equalObjects(a, b *unstructured.Unstructured) bool { return reflect.DeepEqual(a, b) }

func uidOf(s string) types.UID { return types.UID(s) }
