package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fromStored turns a stored object into this version; it may change it.
func (e *endpoint) fromStored(object runtime.Object) (runtime.Object, error) {
	return convert(object, e.gvk())
}

// toStored turns an object of this version into what is stored; it may change it.
func (e *endpoint) toStored(object runtime.Object) (runtime.Object, error) {
	return convert(object, e.stored.kind)
}

// convert goes by the names of the fields, which is right for all versions of a
// kind that are served, except for the ones in renamed and autoscaling.
func convert(object runtime.Object, to schema.GroupVersionKind) (runtime.Object, error) {
	from := object.GetObjectKind().GroupVersionKind()
	if from == to {
		return object, nil
	}
	if custom, ok := object.(*unstructured.Unstructured); ok {
		custom.SetGroupVersionKind(to)
		return custom, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	switch {
	case from.Kind == "Event" && to.Group == "events.k8s.io":
		rename(content, eventFields)
	case from.Kind == "Event":
		rename(content, invert(eventFields))
	case from.Kind == "HorizontalPodAutoscaler":
		convertAutoscaler(content, to.Version)
	}
	converted, err := scheme.New(to)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, converted); err != nil {
		return nil, fmt.Errorf("convert %s to %s: %w", from, to.GroupVersion(), err)
	}
	converted.GetObjectKind().SetGroupVersionKind(to)
	return converted, nil
}

// eventFields are those that the group events.k8s.io calls otherwise.
var eventFields = map[string]string{
	"involvedObject":     "regarding",
	"message":            "note",
	"reportingComponent": "reportingController",
	"source":             "deprecatedSource",
	"firstTimestamp":     "deprecatedFirstTimestamp",
	"lastTimestamp":      "deprecatedLastTimestamp",
	"count":              "deprecatedCount",
}

func rename(content map[string]any, names map[string]string) {
	for old, name := range names {
		if value, ok := content[old]; ok {
			delete(content, old)
			content[name] = value
		}
	}
}

func invert(names map[string]string) map[string]string {
	inverse := make(map[string]string, len(names))
	for a, b := range names {
		inverse[b] = a
	}
	return inverse
}

// convertAutoscaler moves the one target that autoscaling/v1 knows, the use of
// CPU, between its own field and the metrics of v2. Other metrics are not seen in
// v1.
func convertAutoscaler(content map[string]any, version string) {
	spec, _ := content["spec"].(map[string]any)
	if spec == nil {
		return
	}
	if version == "v1" {
		metrics, _ := spec["metrics"].([]any)
		for _, metric := range metrics {
			fields, _ := metric.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "resource", "name")
			if use, found, _ := unstructured.NestedInt64(fields, "resource", "target", "averageUtilization"); found && name == "cpu" {
				spec["targetCPUUtilizationPercentage"] = use
			}
		}
		delete(spec, "metrics")
		return
	}
	use, found := spec["targetCPUUtilizationPercentage"]
	if !found {
		return
	}
	delete(spec, "targetCPUUtilizationPercentage")
	spec["metrics"] = []any{map[string]any{
		"type": "Resource",
		"resource": map[string]any{
			"name":   "cpu",
			"target": map[string]any{"type": "Utilization", "averageUtilization": use},
		},
	}}
}
