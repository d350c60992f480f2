package ondisk

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func collectionType[T any]() reflect.Type { return reflect.TypeFor[T]() }

func equalObjects(a, b *unstructured.Unstructured) bool { return reflect.DeepEqual(a, b) }

func ownedBy(kind, name, uid string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
}
