package web

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/internal/render"
)

// column is a value that the explorer shows for each object.
type column struct {
	Name string `json:"name"`
	// Path is the field that the column is sorted by; if it is empty, the column cannot be
	// sorted.
	Path string `json:"path,omitempty"`
	// Type is how the page shows it: text, name, number, time or status.
	Type string `json:"type"`

	show func(object map[string]any) string
	// cluster says that it shows the cluster, which is in the key.
	cluster bool
}

// maxCell bounds what a cell shows; the object's own page shows more.
const maxCell = 500

// cell returns the column's text for an object.
func (c column) cell(object map[string]any) string { return render.Cut(c.show(object), maxCell) }

// columnsOf returns the columns of a resource: the columns of all resources and, for the most
// used resources, the fields that users look for. A server's own columns
// (additionalPrinterColumns, Tables) are not part of the objects, so a mirror does not have
// them.
func columnsOf(r mirror.Resource) []column {
	var columns []column
	if r.Namespaced {
		columns = append(columns, field("Namespace", "metadata.namespace", "text"))
	}
	columns = append(columns, field("Name", "metadata.name", "name"))
	if own, ok := ownColumns[r.Name()]; ok {
		columns = append(columns, own...)
	} else {
		columns = append(columns, column{Name: "Status", Path: "status.phase", Type: "status", show: anyStatus})
	}
	return append(columns, field("Age", "metadata.creationTimestamp", "time"))
}

var ownColumns = map[string][]column{
	"pods": {
		{Name: "Ready", Type: "text", show: podReady},
		{Name: "Status", Path: "status.phase", Type: "status", show: podStatus},
		field("Restarts", "status.containerStatuses[0].restartCount", "number"),
		field("Node", "spec.nodeName", "text"),
	},
	"nodes": {
		{Name: "Status", Type: "status", show: condition("Ready", "Ready", "NotReady")},
		field("Version", "status.nodeInfo.kubeletVersion", "text"),
		field("CPU", "status.capacity.cpu", "number"),
		field("Memory", "status.capacity.memory", "number"),
	},
	"deployments.apps": {
		replicas("readyReplicas"), {Name: "Status", Type: "status", show: condition("Available", "Available", "Unavailable")},
		field("Updated", "status.updatedReplicas", "number"), image,
	},
	"replicasets.apps":  {replicas("readyReplicas"), image},
	"statefulsets.apps": {replicas("readyReplicas"), image},
	"daemonsets.apps": {
		field("Desired", "status.desiredNumberScheduled", "number"),
		field("Ready", "status.numberReady", "number"), image,
	},
	"jobs.batch": {field("Succeeded", "status.succeeded", "number"), field("Failed", "status.failed", "number"), image},
	"services": {
		field("Type", "spec.type", "text"), field("Cluster IP", "spec.clusterIP", "text"),
		field("Port", "spec.ports[0].port", "number"),
	},
	"events": {
		field("Type", "type", "status"), field("Reason", "reason", "text"),
		field("Object", "involvedObject.name", "text"), field("Message", "message", "text"),
	},
	"secrets":                {field("Type", "type", "text")},
	"configmaps":             {{Name: "Entries", Type: "number", show: entries}},
	"namespaces":             {field("Status", "status.phase", "status")},
	"persistentvolumeclaims": {field("Status", "status.phase", "status"), field("Capacity", "status.capacity.storage", "number")},
}

var image = field("Image", "spec.template.spec.containers[0].image", "text")

// field is a column that shows the field it is sorted by.
func field(name, path, kind string) column {
	p := fieldpath.MustParse(path)
	return column{Name: name, Path: path, Type: kind, show: func(object map[string]any) string {
		value, err := p.First(object)
		if err != nil {
			return ""
		}
		return value.String()
	}}
}

func replicas(have string) column {
	return column{Name: "Ready", Path: "status." + have, Type: "text", show: func(object map[string]any) string {
		want, _, _ := unstructured.NestedInt64(object, "spec", "replicas")
		is, _, _ := unstructured.NestedInt64(object, "status", have)
		return fmt.Sprintf("%d/%d", is, want)
	}}
}

func podReady(object map[string]any) string {
	ready := 0
	statuses := list(object, "status", "containerStatuses")
	for _, status := range statuses {
		if m, _ := status.(map[string]any); m["ready"] == true {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, max(len(statuses), len(list(object, "spec", "containers"))))
}

// podStatus returns the phase, or why a container is not running, as kubectl shows it.
func podStatus(object map[string]any) string {
	if metadata, _ := object["metadata"].(map[string]any); metadata["deletionTimestamp"] != nil {
		return "Terminating"
	}
	for _, status := range list(object, "status", "containerStatuses") {
		m, _ := status.(map[string]any)
		for _, state := range []string{"waiting", "terminated"} {
			if reason, _, _ := unstructured.NestedString(m, "state", state, "reason"); reason != "" {
				return reason
			}
		}
	}
	if reason, _, _ := unstructured.NestedString(object, "status", "reason"); reason != "" {
		return reason
	}
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	return phase
}

// anyStatus is for unknown kinds: it returns a phase, or one of the conditions that most of
// them have.
func anyStatus(object map[string]any) string {
	for _, name := range []string{"phase", "state"} {
		if text, _, _ := unstructured.NestedString(object, "status", name); text != "" {
			return text
		}
	}
	for _, name := range []string{"Ready", "Available", "Established", "Complete"} {
		if text := condition(name, name, "Not"+name)(object); text != "" {
			return text
		}
	}
	return ""
}

// condition returns one text or the other, or nothing if the condition is missing.
func condition(name, yes, no string) func(map[string]any) string {
	return func(object map[string]any) string {
		for _, c := range list(object, "status", "conditions") {
			m, _ := c.(map[string]any)
			if m["type"] != name {
				continue
			}
			if status, _ := m["status"].(string); strings.EqualFold(status, "true") {
				return yes
			}
			return no
		}
		return ""
	}
}

func entries(object map[string]any) string {
	data, _ := object["data"].(map[string]any)
	binary, _ := object["binaryData"].(map[string]any)
	return fmt.Sprint(len(data) + len(binary))
}

// list reads a list in place; the helper of unstructured would copy it.
func list(object map[string]any, path ...string) []any {
	var at any = object
	for _, name := range path {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	found, _ := at.([]any)
	return found
}
