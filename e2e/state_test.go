package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// volatileFields are the fields that differ between servers or change with time.
var volatileFields = []string{
	"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.managedFields",
	"status.podIP", "status.podIPs", "status.startTime",
}

// admissionFields are the fields that admission plugins of the real server fill in, which
// the embedded one does not have: for the account that pods run under, for
// priorities, and for how long a pod stays on a node that fails.
var admissionFields = []string{
	"spec.serviceAccount", "spec.serviceAccountName", "spec.volumes", "spec.containers.volumeMounts",
	"spec.priority", "spec.preemptionPolicy", "spec.tolerations",
}

// finalState is what the server has of the scripted pods, or the custom resources, at the
// end, all fields of them.
func (s *testEnv) finalState() string {
	objects, err := s.truth(s.Context())
	if err != nil {
		return fmt.Sprintf("  cannot be read: %v\n", err)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if mark(objects[key]) != "" {
			fmt.Fprintf(&b, "  %s: %s\n", key, plain(objects[key]))
		}
	}
	return b.String()
}

func plain(object metav1.Object) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err.Error()
	}
	content = runtime.DeepCopyJSON(content)
	delete(content, "kind") // set by some encodings and not by others
	delete(content, "apiVersion")
	for _, path := range slices.Concat(volatileFields, admissionFields) {
		drop(content, strings.Split(path, "."))
	}
	dropTimes(content)
	text, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// drop removes a field, also of all that are in a list.
func drop(value any, path []string) {
	switch value := value.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(value, path[0])
			return
		}
		drop(value[path[0]], path[1:])
	case []any:
		for _, item := range value {
			drop(item, path)
		}
	}
}

// dropTimes removes what is written as a time, wherever.
func dropTimes(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if strings.HasSuffix(name, "Time") || strings.HasSuffix(name, "At") {
				delete(value, name)
			} else {
				dropTimes(inner)
			}
		}
	case []any:
		for _, item := range value {
			dropTimes(item)
		}
	}
}
