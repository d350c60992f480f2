package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
)

func TestDescribe(t *testing.T) {
	source := offline[any](t, pods, SourceOptions{})
	for _, test := range []struct {
		object any
		want   tarn.Meta
		err    string
	}{
		{newPod(1), tarn.Meta{Key: "default/pod-1", Version: "101", UID: "uid-1"}, ""},
		{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, tarn.Meta{Key: "n"}, ""},
		{toUnstructured(t, newPod(1)), tarn.Meta{Key: "default/pod-1", Version: "101", UID: "uid-1"}, ""},
		{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5"}}, tarn.Meta{Version: "5"}, "no name"},
		{nil, tarn.Meta{}, "nil"},
		{(*corev1.Pod)(nil), tarn.Meta{}, "nil"},
		{"text", tarn.Meta{}, "string has no metadata"},
	} {
		got, err := source.Describe(test.object)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%T: %v, %v", test.object, got, err)
		}
	}
}
