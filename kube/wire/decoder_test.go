package wire

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func newDecoder(t testing.TB, of reflect.Type, opts Options) *Decoder {
	t.Helper()
	d, err := NewDecoder(of, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDropUnknown(t *testing.T) {
	for path, complaint := range map[string]string{
		"metadata.managedField":   `cannot drop "metadata.managedField" from v1.Pod: v1.ObjectMeta has no field "managedField"`,
		"metadata.labels.app":     `"labels" is a map[string]string`,
		"spec.containers.name.x":  `"name" is a string`,
		"":                        `v1.Pod has no field ""`,
		"metadata.":               `v1.ObjectMeta has no field ""`,
		"spec.volumes.configmap":  `has no field "configmap"`,
		"spec.volumes.configMap":  "",
		"metadata.labels":         "",
		"apiVersion":              "",
		"spec.containers.env":     "",
		"status.conditions.type":  "",
		"spec.volumes.secret.":    `v1.SecretVolumeSource has no field ""`,
		"spec.volumes.nfs.server": "",
	} {
		_, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), Options{Drop: []string{path}})
		if (err == nil) != (complaint == "") || err != nil && !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: error %v, want %q", path, err, complaint)
		}
	}
}

func TestNoProtobuf(t *testing.T) {
	d := newDecoder(t, reflect.TypeFor[*struct{ Name string }](), Options{})
	if _, err := d.Protobuf(nil); d.HasProtobuf() || err == nil || !strings.Contains(err.Error(), "has no protobuf form") {
		t.Errorf("error %v", err)
	}
	held := func(_, _ string) any { return nil }
	if _, err := d.ProtobufAt(Added, nil, held); err == nil || !strings.Contains(err.Error(), "has no protobuf form") {
		t.Errorf("error of a held object %v", err)
	}
}
