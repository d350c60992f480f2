package ondisk

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// What SQL has as the object is the object, with its kind and without managed
// fields, after every kind of update.
func TestObjectsInSQL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{})
		defer server.Close()
		db, err := sqlite.Open(directory(t), sqlite.Options{})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		pods, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), In[*corev1.Pod](db))
		must(t, err)
		maps, err := kube.Reflect[*corev1.ConfigMap](ctx, server.Config(), In[*corev1.ConfigMap](db))
		must(t, err)
		services, err := kube.ReflectResource(ctx, server.Config(), schema.GroupVersionResource{Version: "v1", Resource: "services"}, In[*unstructured.Unstructured](db))
		must(t, err)
		metadata, err := kube.ReflectMetadata(ctx, server.Config(), schema.GroupVersionResource{Version: "v1", Resource: "pods"}, In[*metav1.PartialObjectMetadata](db, Name("pod_metadata")))
		must(t, err)
		check := func() {
			t.Helper()
			synctest.Wait()
			must(t, db.Flush())
			compareObjects(t, db, "pods", "Pod", pods)
			compareObjects(t, db, "configmaps", "ConfigMap", maps)
			compareObjects(t, db, "services", "Service", services)
			compareObjects(t, db, "pod_metadata", "", metadata)
		}
		p := pod("a1", "node-1")
		p.Annotations = map[string]string{"quote": `it's "quoted" \ and ünïcödé`, "resourceVersion": `"resourceVersion":"1"`}
		config := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"},
			Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"x": {0, 255}}}
		empty := &corev1.ConfigMap{TypeMeta: config.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "empty"}}
		service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		must(t, server.Put(p, config, empty, service))
		check()
		p.Status.Phase = corev1.PodRunning
		must(t, server.Put(p))
		check()
		p.Annotations["resourceVersion"] = "\x01"
		must(t, server.Put(p))
		check()
		p.Spec.NodeName, p.Labels = "node-2", map[string]string{"x": "y"}
		config.Data = nil
		must(t, server.Put(p, config))
		check()
		must(t, server.Delete(p, service))
		check()
		cancel()
		<-pods.Done()
		<-maps.Done()
		<-services.Done()
		<-metadata.Done()
		must(t, db.Close())
	})
}

// Metadata are compared without version and managed fields. The version is inserted
// again when they are read.
func TestMetadataWithoutVersion(t *testing.T) {
	part := func(o *corev1.Pod) (sum [16]byte, value string) {
		raw, err := o.Marshal()
		must(t, err)
		made := wideFields{protobuf: true}.metadata(o, sumsOf(raw))
		text, err := made.Make()
		must(t, err)
		return made.Sum, string(text)
	}
	first := pod("a1", "node-1")
	first.Annotations = map[string]string{"5": `"resourceVersion":"5"`}
	for _, version := range []string{"", "5", "18446744073709551616", "a.B-9", `a"b`, "\x01", "ü", "5 "} {
		o, next := first.DeepCopy(), first.DeepCopy()
		o.ResourceVersion, next.ResourceVersion = version, version+"7"
		next.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		sum, value := part(o)
		want, err := metadataJSON(o)
		must(t, err)
		if got := strings.ReplaceAll(value, sqlite.Hole, version); got != string(want) {
			t.Errorf("%q: filled in, it is\n%s, want\n%s", version, got, want)
		}
		after, changed := part(next)
		if (sum == after) != (value == changed) {
			t.Errorf("%q: the sums are equal: %t; the values are\n%s and\n%s", version, sum == after, value, changed)
		}
		next.Labels = map[string]string{"more": "so"}
		if more, _ := part(next); more == after {
			t.Errorf("%q: a label more makes no difference", version)
		}
	}
}

// compareObjects compares what SQL has with what the copy in memory has.
func compareObjects[T metav1.Object](t *testing.T, db *sqlite.DB, table, kind string, r *tarn.Replica[T]) {
	t.Helper()
	rows, err := db.Query(t.Context(), "SELECT key, object FROM "+table, sqlite.Limits{})
	must(t, err)
	if len(rows.Rows) != r.Len() {
		t.Errorf("%s has %d rows, want %d", table, len(rows.Rows), r.Len())
	}
	for _, row := range rows.Rows {
		held, _ := r.Get(tarn.Key(row[0].(string)))
		raw, err := json.Marshal(held)
		must(t, err)
		var want, got map[string]any
		must(t, json.Unmarshal(raw, &want))
		delete(want["metadata"].(map[string]any), "managedFields")
		if _, typed := any(held).(*unstructured.Unstructured); !typed && kind != "" {
			want["apiVersion"], want["kind"] = "v1", kind
		}
		if row[1] == nil {
			t.Errorf("%s: %v has no object", table, row[0])
			continue
		}
		must(t, json.Unmarshal([]byte(row[1].(string)), &got))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: SQL has\n%s, want\n%s", table, row[1], raw)
		}
	}
}
