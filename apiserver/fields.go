package apiserver

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// selectable returns the fields, beside name and namespace, by which an object
// can be selected. Those of custom resources are put in by selectableCustom.
func selectable(object runtime.Object) map[string]string {
	switch o := object.(type) {
	case *corev1.Pod:
		set := map[string]string{
			"spec.nodeName":            o.Spec.NodeName,
			"spec.restartPolicy":       string(o.Spec.RestartPolicy),
			"spec.schedulerName":       o.Spec.SchedulerName,
			"spec.serviceAccountName":  o.Spec.ServiceAccountName,
			"spec.hostNetwork":         strconv.FormatBool(o.Spec.HostNetwork),
			"status.phase":             string(o.Status.Phase),
			"status.podIP":             o.Status.PodIP,
			"status.nominatedNodeName": o.Status.NominatedNodeName,
		}
		if len(o.Status.PodIPs) > 0 {
			set["status.podIP"] = o.Status.PodIPs[0].IP
		}
		return set
	case *corev1.Event:
		source := o.Source.Component
		if source == "" {
			source = o.ReportingController
		}
		return map[string]string{
			"involvedObject.kind":            o.InvolvedObject.Kind,
			"involvedObject.namespace":       o.InvolvedObject.Namespace,
			"involvedObject.name":            o.InvolvedObject.Name,
			"involvedObject.uid":             string(o.InvolvedObject.UID),
			"involvedObject.apiVersion":      o.InvolvedObject.APIVersion,
			"involvedObject.resourceVersion": o.InvolvedObject.ResourceVersion,
			"involvedObject.fieldPath":       o.InvolvedObject.FieldPath,
			"reason":                         o.Reason,
			"reportingComponent":             o.ReportingController,
			"source":                         source,
			"type":                           o.Type,
		}
	case *corev1.Node:
		return map[string]string{"spec.unschedulable": strconv.FormatBool(o.Spec.Unschedulable)}
	case *corev1.Namespace:
		return map[string]string{"status.phase": string(o.Status.Phase)}
	case *corev1.Secret:
		return map[string]string{"type": string(o.Type)}
	case *corev1.Service:
		return map[string]string{"spec.clusterIP": o.Spec.ClusterIP, "spec.type": string(o.Spec.Type)}
	case *corev1.ReplicationController:
		return map[string]string{"status.replicas": strconv.Itoa(int(o.Status.Replicas))}
	case *batchv1.Job:
		return map[string]string{"status.successful": strconv.Itoa(int(o.Status.Succeeded))}
	case *certificatesv1.CertificateSigningRequest:
		return map[string]string{"spec.signerName": o.Spec.SignerName}
	case *resourcev1.ResourceSlice:
		node := ""
		if o.Spec.NodeName != nil {
			node = *o.Spec.NodeName
		}
		return map[string]string{"spec.nodeName": node, "spec.driver": o.Spec.Driver}
	}
	return fieldsSince037(object)
}

// selectorFields names what an endpoint can be selected by.
func (e *endpoint) selectorFields() []string {
	names := []string{"metadata.name", "metadata.namespace"}
	if e.definition != nil {
		for _, f := range e.definition.SelectableFields {
			names = append(names, f.JSONPath[1:])
		}
		return names
	}
	empty, err := scheme.New(e.stored.knownKind())
	if err != nil {
		return names
	}
	for name := range selectable(empty) {
		names = append(names, name)
	}
	return names
}

// checkFields says what is wrong with a field selector, and puts the names that
// are stored in the place of their other names.
func (e *endpoint) checkFields(selector fields.Selector) (fields.Selector, error) {
	known := e.selectorFields()
	return selector.Transform(func(field, value string) (string, string, error) {
		if e.kind == "Pod" && field == "spec.host" {
			field = "spec.nodeName"
		}
		if e.group == "events.k8s.io" {
			if name, ok := eventSelectors[field]; ok {
				field = name
			}
		}
		switch {
		case slices.Contains(known, field):
			return field, value, nil
		case len(known) == 2 && !e.custom:
			return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", field, known[0], known[1])
		default:
			return "", "", fmt.Errorf("field label not supported: %s", field)
		}
	})
}

var eventSelectors = map[string]string{
	"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace", "regarding.name": "involvedObject.name",
	"regarding.uid": "involvedObject.uid", "reportingController": "reportingComponent",
}

// selectableCustom returns the fields by which a custom resource can be selected.
func (e *endpoint) selectableCustom(object *unstructured.Unstructured) map[string]string {
	if e == nil || e.definition == nil || len(e.definition.SelectableFields) == 0 {
		return nil
	}
	set := map[string]string{}
	for _, f := range e.definition.SelectableFields {
		set[f.JSONPath[1:]] = ""
		path := jsonpath.New(f.JSONPath).AllowMissingKeys(true)
		if path.Parse("{"+f.JSONPath+"}") != nil {
			continue
		}
		if results, err := path.FindResults(object.Object); err == nil && len(results) > 0 && len(results[0]) > 0 {
			set[f.JSONPath[1:]] = fmt.Sprint(results[0][0].Interface())
		}
	}
	return set
}
