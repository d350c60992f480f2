package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gears is a definition of gears in a group, and gear one of them.
func gears(group string) *apiextensions.CustomResourceDefinition {
	return &apiextensions.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "gears." + group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "gears", Singular: "gear", Kind: "Gear", ListKind: "GearList"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensions.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object"},
			}}},
		},
	}
}

func gear(group, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Gear", "metadata": map[string]any{"namespace": "default", "name": name},
	}}
}

// ends interrupts a command that reports errors.
func (f *feeding) ends() {
	f.t.Helper()
	f.interrupt()
	if code := <-f.ended; code != 0 {
		f.t.Errorf("it ended with %d and %s", code, f.errOut.String())
	}
}

// The names of two resources make the same name of a table. One of them is fed, at each start the
// same one, and the command says why the other one is not. Other resources do not matter.
func TestFeedTwoResourcesOfOneTable(t *testing.T) {
	f := newFed(t)
	r := newRig(t, pod("web-1", corev1.PodPending), gears("a-b.example"), gears("a.b.example"), gear("a-b.example", "one"), gear("a.b.example", "two"))
	first := r.feed("gears.a-b.example", "-A", "--to", f.address, "--interval", "100ms")
	f.await("SELECT key FROM gears_a_b_example", "default/one")
	first.stop()

	said := []string{"it is the table of another resource", "gears_a_b_example has gears.a-b.example", "and gears.a.b.example has a table of the same name", "another schema"}
	if err := r.run("feed", "gears.a.b.example", "-A", "--to", f.address).check(exitFailed, said...); err != nil {
		t.Error(err)
	}
	for range 3 {
		both := r.feed("gears.a-b.example", "gears.a.b.example", "pods", "-A", "--to", f.address, "--interval", "100ms")
		both.says("gears.a.b.example: in memory only: postgres: gears_a_b_example: " + said[0])
		both.says("gears.a-b.example: 1 object, 0.0 events/s, watching")
		f.await("SELECT count(*) FROM tarn_positions", "2")
		both.ends()
		f.await("SELECT key FROM gears_a_b_example", "default/one")
		f.await("SELECT key FROM pods", "default/web-1")
	}
	f.await("SELECT count(*) FROM tarn_gaps", "0")
}

// As for tables: a bucket is of one resource, whichever command feeds it.
func TestFeedTwoResourcesOfOneBucket(t *testing.T) {
	b := newBroker(t)
	r := newRig(t, pod("web-1", corev1.PodPending), gears("a-b.example"), gears("a.b.example"), gear("a-b.example", "one"), gear("a.b.example", "two"))
	has := func() {
		t.Helper()
		b.await("Gear  gone", func() string {
			return b.phase("default_gears_a_b_example", "default.one") + " " + b.phase("default_gears_a_b_example", "default.two")
		})
	}
	both := r.feed("gears.a-b.example", "gears.a.b.example", "pods", "-A", "--to", b.address, "--interval", "100ms")
	both.says("gears.a.b.example: in memory only: jetstream: open bucket default_gears_a_b_example: it is the bucket of another resource")
	has()
	b.await("Pod Pending", func() string { return b.phase("default_pods", "default.web-1") })
	if err := r.run("feed", "gears.a.b.example", "-A", "--to", b.address).check(exitFailed, "it has gears.a-b.example, and this feeder writes gears.a.b.example", "--cluster-name"); err != nil {
		t.Error(err)
	}
	both.ends()
	has()
	if err := r.run("feed", "gears.a.b.example", "-A", "--to", b.address).check(exitFailed, "it has gears.a-b.example"); err != nil {
		t.Error(err)
	}
	other := r.feed("gears.a.b.example", "-A", "--to", b.address, "--cluster-name", "other", "--interval", "100ms")
	b.await("Gear ", func() string { return b.phase("other_gears_a_b_example", "default.two") })
	other.stop()
	has()
}
