package kube

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
)

// kindFilter decides by their kind which objects belong to a collection. An object
// without a kind is accepted.
type kindFilter struct {
	// want is the kind of the objects; empty if it is not known.
	want runtime.TypeMeta
	// encoded is want in protobuf as servers write it, so that comparing bytes is
	// enough for all objects but foreign ones.
	encoded  string
	metadata bool
}

func kindFilterOf(c Collection) kindFilter {
	k := kindFilter{metadata: c.Object == metadataType}
	k.want.APIVersion, k.want.Kind = c.Kind.ToAPIVersionAndKind()
	inEnvelope := k.want
	if k.metadata {
		inEnvelope = runtime.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	}
	if raw, err := inEnvelope.Marshal(); err == nil && inEnvelope.Kind != "" {
		k.encoded = string(raw)
	}
	return k
}

// foreign returns an error if an object of this kind does not belong here.
func (k *kindFilter) foreign(t runtime.TypeMeta) error {
	switch {
	case t.Kind == "" || t == k.want || t.APIVersion == "" && t.Kind == k.want.Kind:
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

// foreignList returns an error if an answer is not a list of these objects.
//
// Custom resources, whose group has a dot, may have lists of any kind, and their
// items carry their own; so for them the kind of the list counts only if an item
// has none.
func (k *kindFilter) foreignList(head listHead, silent bool) error {
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

// itemsOf is the kind of list items that have no kind of their own.
func (k *kindFilter) itemsOf(head listHead) runtime.TypeMeta {
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
