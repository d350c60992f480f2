package kube

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
)

// kinds knows which objects belong into a collection, by what they say they are.
// One that says nothing is taken at the word of who sent it.
type kinds struct {
	// want is the kind of the objects; empty if that is not known.
	want runtime.TypeMeta
	// packed is want as servers write it in protobuf, so that comparing bytes is
	// enough for all objects but foreign ones.
	packed   string
	metadata bool
}

func kindsOf(c Collection) kinds {
	k := kinds{metadata: c.Object == metadataType}
	k.want.APIVersion, k.want.Kind = c.Kind.ToAPIVersionAndKind()
	inEnvelope := k.want
	if k.metadata {
		inEnvelope = runtime.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	}
	if raw, err := inEnvelope.Marshal(); err == nil && inEnvelope.Kind != "" {
		k.packed = string(raw)
	}
	return k
}

// foreign says why an object of this kind does not belong here.
func (k *kinds) foreign(t runtime.TypeMeta) error {
	switch {
	case t.Kind == "" || t == k.want:
		return nil
	case k.metadata && t.Kind == "PartialObjectMetadata" && strings.HasPrefix(t.APIVersion, metav1.GroupName+"/"):
		return nil
	case t.Kind == "Status" && t.APIVersion == "v1":
		return fmt.Errorf("the object is a Status")
	case isTable(t):
		return fmt.Errorf("unsupported kind %s; ask for objects, not for a table", describeKind(t))
	case k.want.Kind == "":
		return nil
	}
	return fmt.Errorf("the object is of kind %s, expected %s", describeKind(t), describeKind(k.want))
}

// foreignList says why an answer is not a list of these objects.
//
// Custom resources, whose group has a dot, may call their lists anything, and their
// items say themselves what they are; so for them the list's own kind counts only
// where an item is silent.
func (k *kinds) foreignList(head listHead, silent bool) error {
	t := head.TypeMeta
	of, isList := strings.CutSuffix(t.Kind, "List")
	wantGroup, _, _ := strings.Cut(k.want.APIVersion, "/")
	strict := silent || !strings.Contains(wantGroup, ".")
	switch {
	case isTable(t):
		return fmt.Errorf("%w: unsupported list gvk: %s; ask for objects, not for a table", tarn.ErrNoList, t.GroupVersionKind())
	case !head.items && !isList:
		return fmt.Errorf("%w: it is of kind %q and has no items", tarn.ErrNoList, t.Kind)
	case t.Kind == "" || t.Kind == "List" || k.want.Kind == "":
		return nil
	case k.metadata && of == "PartialObjectMetadata":
		return nil
	case strict && of != k.want.Kind || t.APIVersion != k.want.APIVersion && t.APIVersion != "":
		return fmt.Errorf("%w of these objects: it is a %s, expected one of %s", tarn.ErrNoList, describeKind(t), describeKind(k.want))
	}
	return nil
}

// itemsOf is the kind of a list's items that do not say theirs.
func (k *kinds) itemsOf(head listHead) runtime.TypeMeta {
	if k.want.Kind != "" {
		return k.want
	}
	kind, isList := strings.CutSuffix(head.Kind, "List")
	if !isList {
		return runtime.TypeMeta{}
	}
	return runtime.TypeMeta{APIVersion: head.APIVersion, Kind: kind}
}

func isTable(t runtime.TypeMeta) bool {
	return t.Kind == "Table" && (t.APIVersion == metav1.GroupName+"/v1" || t.APIVersion == metav1.GroupName+"/v1beta1")
}

func describeKind(t runtime.TypeMeta) string {
	return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).String()
}
