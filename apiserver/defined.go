package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Definitions is the resource whose objects define custom resources.
var Definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// DefinedResource returns the resource that an object of [Definitions] defines, in one
// version. It fails if the definition is not established yet, or does not serve the version.
// Objects of the resource are held as JSON.
func DefinedResource(definition *Object, version string) (*Resource, error) {
	object, err := definition.object()
	if err != nil {
		return nil, err
	}
	defined, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("%s is not a CustomResourceDefinition", definition.key)
	}
	if !established(defined) {
		return nil, fmt.Errorf("the definition %s is not established", definition.key)
	}
	if problems := checkDefinition(defined); len(problems) > 0 {
		return nil, fmt.Errorf("the definition %s cannot be used: %w", definition.key, problems.ToAggregate())
	}
	completeDefinition(defined)
	for _, e := range customResource(defined).versions {
		if e.version == version {
			e.stored = &storage{kind: e.gvk(), custom: true}
			e.stored.selects.Store(e)
			return &Resource{endpoint: e, defined: defined}, nil
		}
	}
	return nil, fmt.Errorf("the definition %s does not serve the version %s", definition.key, version)
}

func established(defined *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range defined.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// Definition distinguishes the definition of a custom resource from others, and from its
// own state before a change; empty for a built-in resource.
func (r *Resource) Definition() string {
	if r.defined == nil {
		return ""
	}
	return fmt.Sprintf("%s generation %d", r.defined.UID, r.defined.Generation)
}

// SameDefinition says whether two resources have one definition. Servers start over with
// the objects of a custom resource if it changes: they may have other defaults and fields.
func (r *Resource) SameDefinition(other *Resource) bool {
	if r.defined == nil || other.defined == nil {
		return r.defined == other.defined
	}
	return r.defined.UID == other.defined.UID &&
		apiequality.Semantic.DeepEqual(r.defined.Spec, other.defined.Spec) &&
		apiequality.Semantic.DeepEqual(r.defined.Status.AcceptedNames, other.defined.Status.AcceptedNames)
}

// customMetadata is what is read of the JSON of a custom resource.
type customMetadata struct {
	Metadata struct {
		Name, Namespace, ResourceVersion string
		UID                              types.UID
		Labels                           labels.Set
	}
}

// newCustom makes an object of JSON that another server sent.
func (r *Resource) newCustom(raw []byte) (*Object, error) {
	var read customMetadata
	raw = bytes.TrimSpace(raw)
	if err := json.Unmarshal(raw, &read); err != nil {
		return nil, err
	}
	m := read.Metadata
	if m.Name == "" {
		return nil, errors.New("the object has no name")
	}
	return (&Object{in: r.endpoint.stored, key: joinKey(m.Namespace, m.Name), raw: raw, uid: m.UID, labels: m.Labels}).at(m.ResourceVersion)
}
