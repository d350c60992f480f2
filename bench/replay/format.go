package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Format is one form in which the collection is served.
type Format string

const (
	// Protobuf is core/v1 pods in protobuf.
	Protobuf Format = "protobuf"
	// JSON is core/v1 pods in JSON.
	JSON Format = "json"
	// Metadata is core/v1 pods in protobuf, reduced to PartialObjectMetadata.
	Metadata Format = "metadata"
	// Custom is the pods as a custom resource, in JSON.
	Custom Format = "custom"
)

// CustomGroup and CustomVersion are those of the custom resource.
const (
	CustomGroup   = "bench.example.com"
	CustomVersion = "v1"
)

const (
	typeJSON     = "application/json"
	typeProtobuf = "application/vnd.kubernetes.protobuf"

	corePath   = "/api/v1/pods"
	customPath = "/apis/" + CustomGroup + "/" + CustomVersion + "/pods"
)

// traits are what a server must know of a format.
type traits struct {
	path      string
	mediaType string
	partial   bool
	codec     codec
	encode    func(*corev1.Pod) ([]byte, error)
}

var formats = map[Format]traits{
	Protobuf: {corePath, typeProtobuf, false, protobufCodec{"v1", "Pod"}, (*corev1.Pod).Marshal},
	JSON:     {corePath, typeJSON, false, jsonCodec{"v1", "Pod", false}, encodeCore},
	Metadata: {corePath, typeProtobuf, true, protobufCodec{"meta.k8s.io/v1", "PartialObjectMetadata"}, encodeMetadata},
	Custom:   {customPath, typeJSON, false, jsonCodec{CustomGroup + "/" + CustomVersion, "Pod", true}, encodeCustom},
}

func encodeCore(pod *corev1.Pod) ([]byte, error) { return json.Marshal(pod) }

func encodeMetadata(pod *corev1.Pod) ([]byte, error) {
	partial := metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
	return partial.Marshal()
}

// encodeCustom orders keys by the alphabet, as a server does that knows no Go
// type of the resource.
func encodeCustom(pod *corev1.Pod) ([]byte, error) {
	typed, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	numbers := json.NewDecoder(bytes.NewReader(typed))
	numbers.UseNumber()
	if err := numbers.Decode(&object); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// accepts says whether an Accept clause names this format.
func (t traits) accepts(clause string) bool {
	mediaType, parameters, err := mime.ParseMediaType(clause)
	if err != nil || strings.HasPrefix(parameters["as"], "PartialObjectMetadata") != t.partial {
		return false
	}
	return mediaType == t.mediaType || mediaType == "*/*" || mediaType == "application/*"
}

// choose finds the first format of these, all of one path, that the Accept header
// names.
func choose(served []*form, accept string) (*form, error) {
	if accept == "" {
		accept = typeJSON
	}
	for clause := range strings.SplitSeq(accept, ",") {
		for _, f := range served {
			if f.accepts(strings.TrimSpace(clause)) {
				return f, nil
			}
		}
	}
	return nil, fmt.Errorf("none of %q is served here; the formats were named when the server was started", accept)
}
