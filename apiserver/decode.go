package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

func readBody(r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body of the request could not be read: %v", err))
	}
	if len(data) > maxBody {
		return nil, entityTooLarge()
	}
	return data, checkNesting(data)
}

// bodyMedia is what a body is written in; JSON if it does not say.
func bodyMedia(r *http.Request) (media, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return asJSON, nil
	}
	name, _, err := mime.ParseMediaType(header)
	if err == nil {
		for i, known := range mediaTypes {
			if name == known {
				return media(i), nil
			}
		}
	}
	return asJSON, unsupportedMedia(allMedia)
}

// strictness is what is done about fields that are unknown or given twice.
type strictness string

func (s strictness) complains() bool { return s != metav1.FieldValidationIgnore }

// decode reads an object of the endpoint's kind and version from a body. It also
// returns what a careful reader would object to.
func (e *endpoint) decode(data []byte, media media) (runtime.Object, []string, error) {
	if e.custom {
		return e.decodeCustom(data, media)
	}
	var decoder runtime.Decoder = protobuf.NewSerializer(scheme, scheme)
	if media != asProtobuf {
		decoder = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme, scheme, kjson.SerializerOptions{Yaml: media == asYAML, Strict: true})
	}
	wanted := e.gvk()
	object, actual, err := decoder.Decode(data, &wanted, nil)
	var objections []string
	if runtime.IsStrictDecodingError(err) {
		strict, _ := runtime.AsStrictDecodingError(err)
		var found complaints
		for _, problem := range strict.Errors() {
			found.add(problem.Error)
		}
		objections = found.all()
		err = nil
	}
	switch {
	case err != nil && (actual == nil || actual.Kind == ""):
		return nil, nil, e.unrecognized(err, data)
	case err != nil:
		return nil, nil, e.unfit(actual.Kind, actual.Version, err)
	case *actual != wanted:
		return nil, nil, e.unfit(actual.Kind, actual.Version, fmt.Errorf("expected %s", wanted))
	}
	object.GetObjectKind().SetGroupVersionKind(wanted)
	return object, objections, nil
}

func (e *endpoint) unrecognized(err error, data []byte) error {
	summary := strings.TrimSpace(string(data))
	if summary == "" {
		summary = "<empty>"
	} else if len(summary) > 256 {
		summary = summary[:256] + " ..."
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", e.kind, err, summary))
}

func (e *endpoint) unfit(kind, version string, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", kind, version, e.kind, err))
}

// strictError turns complaints into an error.
func (e *endpoint) strictError(complaints []string) error {
	return e.unfit(e.kind, e.version, errors.New("strict decoding error: "+strings.Join(complaints, ", ")))
}

func (e *endpoint) decodeCustom(data []byte, media media) (runtime.Object, []string, error) {
	if media == asProtobuf {
		return nil, nil, unsupportedMedia("application/json, application/yaml")
	}
	if media == asYAML {
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, nil, e.unrecognized(err, data)
		}
		data = converted
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, nil, e.unrecognized(err, data)
	}
	if actual := object.GroupVersionKind(); actual != e.gvk() {
		return nil, nil, e.unfit(actual.Kind, actual.Version, fmt.Errorf("expected %s", e.gvk()))
	}
	if err := checkMetadata(object); err != nil {
		return nil, nil, e.unfit(e.kind, e.version, err)
	}
	return object, prune(object.Object, e.definition.Schema), nil
}

// checkMetadata turns down metadata that no accessor could read, rather than
// taking it for empty.
func checkMetadata(object *unstructured.Unstructured) error {
	content, found := object.Object["metadata"]
	if !found {
		return nil
	}
	fields, ok := content.(map[string]any)
	if !ok {
		return errors.New("metadata is not an object")
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &metav1.ObjectMeta{})
}

// decodeOptions reads the options of a delete from the body, or from the query if
// there is no body.
func decodeOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	data, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		query := r.URL.Query()
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, options, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return options, nil
	}
	written, err := bodyMedia(r)
	if err != nil {
		return nil, err
	}
	if written == asProtobuf {
		var unknown runtime.Unknown
		rest, ok := bytes.CutPrefix(data, []byte("k8s\x00"))
		if !ok || unknown.Unmarshal(rest) != nil || options.Unmarshal(unknown.Raw) != nil {
			return nil, apierrors.NewBadRequest("the body of the request is not a DeleteOptions in protobuf")
		}
		options.Kind = unknown.Kind
	} else if err := yaml.Unmarshal(data, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if options.Kind != "" && options.Kind != "DeleteOptions" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected DeleteOptions, not kind %q", options.Kind))
	}
	return options, nil
}
