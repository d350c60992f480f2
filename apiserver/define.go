package apiserver

import (
	"errors"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
)

func (e *endpoint) isDefinitions() bool {
	return e.group == apiextensionsv1.GroupName && e.plural == "customresourcedefinitions"
}

// checkDefinition looks for what would make a definition unusable.
func checkDefinition(definition *apiextensionsv1.CustomResourceDefinition) (problems field.ErrorList) {
	spec, path := definition.Spec, field.NewPath("spec")
	if wanted := spec.Names.Plural + "." + spec.Group; definition.Name != wanted {
		problems = append(problems, field.Invalid(metadataPath.Child("name"), definition.Name, "must be spec.names.plural+\".\"+spec.group"))
	}
	for name, value := range map[string]string{"group": spec.Group, "scope": string(spec.Scope), "names.plural": spec.Names.Plural, "names.kind": spec.Names.Kind} {
		if value == "" {
			problems = append(problems, field.Required(path.Child(name), ""))
		}
	}
	stored := 0
	for i, v := range spec.Versions {
		if v.Storage {
			stored++
		}
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			problems = append(problems, field.Required(path.Child("versions").Index(i).Child("schema", "openAPIV3Schema"), "schemas are required"))
		}
		for j, f := range v.SelectableFields {
			if !strings.HasPrefix(f.JSONPath, ".") || len(f.JSONPath) < 2 {
				problems = append(problems, field.Invalid(path.Child("versions").Index(i).Child("selectableFields").Index(j), f.JSONPath, "must begin with a dot"))
			}
		}
	}
	if stored != 1 {
		problems = append(problems, field.Invalid(path.Child("versions"), len(spec.Versions), "must have exactly one version marked as storage version"))
	}
	return problems
}

// completeDefinition fills in what may be left out, and accepts the names: with
// nothing to wait for, a definition is established from the beginning.
func completeDefinition(definition *apiextensionsv1.CustomResourceDefinition) {
	names := &definition.Spec.Names
	if names.Singular == "" {
		names.Singular = strings.ToLower(names.Kind)
	}
	if names.ListKind == "" && names.Kind != "" {
		names.ListKind = names.Kind + "List"
	}
	if definition.Spec.Conversion == nil {
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	status := &definition.Status
	status.AcceptedNames = *names.DeepCopy()
	for _, v := range definition.Spec.Versions {
		if v.Storage && !slices.Contains(status.StoredVersions, v.Name) {
			status.StoredVersions = append(status.StoredVersions, v.Name)
		}
	}
	setCondition(status, apiextensionsv1.NamesAccepted, "NoConflicts", "no conflicts found")
	setCondition(status, apiextensionsv1.Established, "InitialNamesAccepted", "the initial names have been accepted")
}

func setCondition(status *apiextensionsv1.CustomResourceDefinitionStatus, kind apiextensionsv1.CustomResourceDefinitionConditionType, reason, message string) {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return
		}
	}
	status.Conditions = append(status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: kind, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.Now().Rfc3339Copy(), Reason: reason, Message: message,
	})
}

// define serves what a definition says now, which may be more than what its
// caller wrote, or nothing.
func (s *Server) define(name string) error {
	s.defining.Lock()
	defer s.defining.Unlock()
	found := s.state.find(s.definitions.content, name)
	if found == nil {
		return nil
	}
	object, err := found.object()
	if err != nil {
		return err
	}
	made := customResource(object.(*apiextensionsv1.CustomResourceDefinition))
	i := slices.IndexFunc(s.custom, func(r *resource) bool { return r.groupResource() == made.groupResource() })
	if i < 0 {
		s.custom = append(slices.Clip(s.custom), made)
	} else {
		made.keeps(s.custom[i].content)
		s.custom = slices.Clone(s.custom)
		s.custom[i] = made
	}
	s.state.mu.Lock()
	s.state.collections[made.content] = true
	s.state.mu.Unlock()
	if len(made.versions) > 0 {
		made.content.selects.Store(made.versions[0])
	}
	s.catalog.Store(newCatalog(s.builtin, s.custom))
	return nil
}

func customResource(definition *apiextensionsv1.CustomResourceDefinition) *resource {
	names := definition.Spec.Names
	r := &resource{
		group: definition.Spec.Group, plural: names.Plural, singular: names.Singular, kind: names.Kind, listKind: names.ListKind,
		shortNames: names.ShortNames, categories: names.Categories,
		namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
		counts:     true,
		custom:     true,
	}
	for i, v := range definition.Spec.Versions {
		e := &endpoint{resource: r, version: v.Name, definition: &definition.Spec.Versions[i]}
		e.status = v.Subresources != nil && v.Subresources.Status != nil
		if v.Storage {
			r.keeps(newCollection(e.gvk(), true))
		}
		if v.Served {
			r.versions = append(r.versions, e)
		}
	}
	slices.SortStableFunc(r.versions, func(a, b *endpoint) int { return version.CompareKubeAwareVersionStrings(b.version, a.version) })
	return r
}

// undefine serves it no longer, and ends all watches of it.
func (s *Server) undefine(name string) {
	s.defining.Lock()
	defer s.defining.Unlock()
	i := slices.IndexFunc(s.custom, func(r *resource) bool { return r.plural+"."+r.group == name })
	if i < 0 {
		return
	}
	gone := s.custom[i].content
	s.custom = slices.Delete(slices.Clone(s.custom), i, i+1)
	s.catalog.Store(newCatalog(s.builtin, s.custom))
	s.state.mu.Lock()
	delete(s.state.collections, gone)
	gone.end()
	s.state.mu.Unlock()
}

// releaseDefinition lets a definition go that is on its way out, once there is
// nothing left of what it defines.
func (s *Server) releaseDefinition(r *resource) error {
	name := r.plural + "." + r.group
	for {
		before := s.state.find(s.definitions.content, name)
		if before == nil {
			return nil
		}
		object, err := before.object()
		if err != nil {
			return err
		}
		if left, _, _ := s.state.snapshot(r.content, "", 0); len(left) > 0 || accessor(object).GetDeletionTimestamp() == nil {
			return nil
		}
		accessor(object).SetFinalizers(slices.DeleteFunc(accessor(object).GetFinalizers(), func(f string) bool {
			return f == apiextensionsv1.CustomResourceCleanupFinalizer
		}))
		if finished(object) {
			_, err = s.erase(s.definitions, before)
		} else {
			_, err = s.state.commit(s.definitions.content, name, before, object, nil)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}
