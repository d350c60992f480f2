package demo

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	databaseGroup   = "demo.tarn.dev"
	databaseVersion = "v1"
	databaseKind    = "Database"
)

// databases is the definition of the custom resource.
func databases() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	number := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
	}
	condition := object(map[string]apiextensionsv1.JSONSchemaProps{
		"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": {Type: "string", Format: "date-time"},
	})
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{
			"engine": text, "version": text, "replicas": number, "storage": text,
			"parameters": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
			"backup":     object(map[string]apiextensionsv1.JSONSchemaProps{"schedule": text, "keep": number}),
		}),
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{
			"phase": text, "primary": text, "connections": number, "storedMegabytes": number, "lastBackup": {Type: "string", Format: "date-time"},
			"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition}},
		}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "databases." + databaseGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: databaseGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "databases", Singular: "database", Kind: databaseKind, ListKind: databaseKind + "List", ShortNames: []string{"db"}, Categories: []string{"all"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: databaseVersion, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
					{Name: "Engine", Type: "string", JSONPath: ".spec.engine"},
					{Name: "Phase", Type: "string", JSONPath: ".status.phase"},
					{Name: "Connections", Type: "integer", JSONPath: ".status.connections"},
					{Name: "Primary", Type: "string", JSONPath: ".status.primary"},
					{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
				},
			}},
		},
	}
}

// database is a custom resource of a simulated operator.
type database struct {
	w      *Workload
	object *unstructured.Unstructured
	// busy says that a backup or failover is under way.
	busy bool
}

func (w *Workload) addDatabase(number int) {
	place := namespaces[number%len(namespaces)]
	engine := pick(w.random, []struct{ name, version string }{{"postgres", "17.2"}, {"mysql", "8.4"}, {"redis", "7.4"}})
	name := fmt.Sprintf("%s-%s-%d", pick(w.random, place.apps), engine.name, number+1)
	d := &database{w: w, object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": databaseGroup + "/" + databaseVersion, "kind": databaseKind,
		"metadata": map[string]any{"namespace": place.namespace, "name": name, "labels": map[string]any{
			"engine": engine.name, teamLabel: place.team, partOfLabel: place.namespace,
		}},
		"spec": map[string]any{
			"engine": engine.name, "version": engine.version, "replicas": int64(w.between(1, 3)), "storage": fmt.Sprintf("%dGi", 10*w.between(1, 50)),
			"parameters": map[string]any{"max_connections": "500", "shared_buffers": "2GB", "log_min_duration": "250ms", "timezone": "UTC"},
			"backup":     map[string]any{"schedule": "0 */6 * * *", "keep": int64(14)},
		},
		"status": map[string]any{"storedMegabytes": int64(w.between(100, 90_000)), "lastBackup": stamp(w.queue.now.Add(-w.within(time.Hour, 6*time.Hour)))},
	}}}
	d.setPhase("Ready")
	d.set(name+"-0", "primary")
	d.set(int64(w.between(1, 400)), "connections")
	w.databases = append(w.databases, d)
	w.create(d.object)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (d *database) set(value any, field string) {
	status := d.object.Object["status"].(map[string]any)
	status[field] = value
}

func (d *database) setPhase(phase string) {
	ready := "True"
	if phase == "FailingOver" {
		ready = "False"
	}
	d.set(phase, "phase")
	d.set([]any{map[string]any{"type": "Ready", "status": ready, "reason": phase, "lastTransitionTime": stamp(d.w.queue.now)}}, "conditions")
}

// updateStatus writes new values of the frequently changing fields.
func (d *database) updateStatus() {
	status := d.object.Object["status"].(map[string]any)
	d.set(int64(d.w.between(1, 400)), "connections")
	d.set(status["storedMegabytes"].(int64)+int64(d.w.between(0, 3)), "storedMegabytes")
	d.w.put(d.object)
}

// backUp and failOver change the phase for a few seconds.
func (d *database) backUp() {
	d.transition("BackingUp", "Backup", func() { d.set(stamp(d.w.queue.now), "lastBackup") })
}

func (d *database) failOver() {
	d.transition("FailingOver", "Failover", func() { d.set(fmt.Sprintf("%s-%d", d.object.GetName(), d.w.between(0, 2)), "primary") })
}

func (d *database) transition(through, reason string, end func()) {
	if d.busy {
		d.updateStatus()
		return
	}
	d.busy = true
	d.setPhase(through)
	d.w.put(d.object)
	d.w.event(d.object, databaseKind, corev1.EventTypeNormal, reason+"Started", reason+" of "+d.object.GetName()+" has begun", "database-operator")
	d.w.queue.after(d.w.within(2*time.Second, 9*time.Second), func() {
		d.busy = false
		end()
		d.setPhase("Ready")
		d.w.put(d.object)
		d.w.event(d.object, databaseKind, corev1.EventTypeNormal, reason+"Completed", reason+" of "+d.object.GetName()+" is done", "database-operator")
	})
}
