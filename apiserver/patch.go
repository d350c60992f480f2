package apiserver

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	patchtypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxOperations bounds a JSON patch, as the real server does.
const maxOperations = 10_000

// patch is the patch of a request.
type patch struct {
	metav1.PatchOptions
	data  []byte
	apply patcher
}

func (p *patch) writeMode() writeMode { return writeMode{dry: len(p.DryRun) > 0} }

func (s *Server) patch(r *request) error {
	p, err := r.readPatch(r.custom)
	if err != nil {
		return err
	}
	patched, err := s.change(r, p.writeMode(), func(current runtime.Object) (runtime.Object, error) { return r.patched(current, p) })
	if err != nil {
		return err
	}
	return s.reader(r.endpoint).sendObject(r, http.StatusOK, patched)
}

// readPatch reads a patch of the request's type. A strategic merge patch needs an
// object that is not custom.
func (r *request) readPatch(custom bool) (*patch, error) {
	name, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	kind := patchtypes.PatchType(name)
	apply, err := r.patcher(kind, custom)
	if err != nil {
		return nil, err
	}
	p := &patch{apply: apply}
	query := r.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&query, &p.PatchOptions, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := invalid("PatchOptions", metav1validation.ValidatePatchOptions(&p.PatchOptions, kind)); err != nil {
		return nil, err
	}
	p.data, err = readBody(r.Request)
	return p, err
}

// patched applies a patch to an object, in JSON as all patches are made for.
func (r *request) patched(current runtime.Object, p *patch) (runtime.Object, error) {
	care := strictness(p.FieldValidation)
	before, err := encodeJSON(current)
	if err != nil {
		return nil, err
	}
	after, err := p.apply(before, p.data)
	if err != nil {
		return nil, err
	}
	if len(after) > maxBody {
		return nil, entityTooLarge()
	}
	object, complaints, err := r.decode(after, asJSON)
	if err == nil && care == metav1.FieldValidationStrict && len(complaints) > 0 {
		err = r.strictError(complaints)
	}
	if err != nil {
		problem := field.Invalid(field.NewPath("patch"), string(p.data), err.Error())
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{problem})
	}
	return object, r.object(complaints, care)
}

// patcher applies a patch to the JSON of an object.
type patcher func(object, patch []byte) ([]byte, error)

func (r *request) patcher(kind patchtypes.PatchType, custom bool) (patcher, error) {
	switch kind {
	case patchtypes.JSONPatchType:
		return jsonPatch, nil
	case patchtypes.MergePatchType:
		return mergePatch, nil
	case patchtypes.StrategicMergePatchType:
		if custom {
			return nil, unsupportedMedia("application/json-patch+json, application/merge-patch+json")
		}
		sample, err := scheme.New(r.gvk())
		return func(object, patch []byte) ([]byte, error) { return strategicPatch(object, patch, sample) }, err
	case patchtypes.ApplyYAMLPatchType, patchtypes.ApplyCBORPatchType:
		return nil, fault(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"this server does not do server-side apply; use a merge patch, a JSON patch, or client-side apply")
	}
	return nil, generic(http.StatusUnsupportedMediaType)
}

func undecodable(err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
}

func jsonPatch(object, patch []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, undecodable(err)
	}
	if len(operations) > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a JSON patch may have %d operations, this one has %d", maxOperations, len(operations)))
	}
	patched, err := operations.Apply(object)
	if err != nil {
		return nil, generic(http.StatusUnprocessableEntity)
	}
	return patched, nil
}

func mergePatch(object, patch []byte) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, undecodable(err)
	}
	patched, err := jsonpatch.MergePatch(object, patch)
	if err != nil {
		return nil, undecodable(err)
	}
	return patched, nil
}

func strategicPatch(object, patch []byte, sample runtime.Object) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, undecodable(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(object, patch, sample)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return patched, nil
}
