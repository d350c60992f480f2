package cache

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func mutationPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "x", Name: "a",
			Labels:            map[string]string{"app": "web", "app.kubernetes.io/name": "a"},
			CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).UTC()),
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Image: "a",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}},
		},
	}
}

func TestFieldChanges(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name   string
		mutate func(*corev1.Pod)
		want   []string
	}{
		{"nothing", func(*corev1.Pod) {}, nil},
		{"a string", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "b" }, []string{`spec.containers[0].image: "a" -> "b"`}},
		{"an inlined field", func(p *corev1.Pod) { p.Kind = "Pod" }, []string{`kind: "" -> "Pod"`}},
		{"map entries", func(p *corev1.Pod) {
			p.Labels["app"] = "db"
			p.Labels["new"] = "1"
			delete(p.Labels, "app.kubernetes.io/name")
		}, []string{`metadata.labels.app: "web" -> "db"`, `metadata.labels["app.kubernetes.io/name"]: "a" -> <none>`, `metadata.labels.new: <none> -> "1"`}},
		{"a map to nil", func(p *corev1.Pod) { p.Labels = nil }, []string{`metadata.labels: {"app":"web","app.kubernetes.io/name":"a"} -> null`}},
		{"nil to empty", func(p *corev1.Pod) { p.Annotations = map[string]string{} }, []string{`metadata.annotations: null -> {}`}},
		{"an appended element", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d"}) }, []string{`spec.containers[1]: <none> -> {"name":"d","resources":{}}`}},
		{"a removed element", func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:0] }, []string{`spec.containers[0]: {"name":"c","image":"a","resources":{"limits":{"cpu":"1"}}} -> <none>`}},
		{"a pointer", func(p *corev1.Pod) { p.Spec.HostUsers = &yes }, []string{`spec.hostUsers: null -> true`}},
		{"a time", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(1e9+1, 0).UTC()) }, []string{`metadata.creationTimestamp: "2001-09-09T01:46:40Z" -> "2001-09-09T01:46:41Z"`}},
		{"a quantity", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2") }, []string{`spec.containers[0].resources.limits.cpu: "1" -> "2"`}},
		{"a quantity that was only read", func(p *corev1.Pod) {
			q := resource.NewQuantity(1, resource.DecimalSI)
			_ = q.String() // which it remembers
			p.Spec.Containers[0].Resources.Limits["cpu"] = *q
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, is := mutationPod(), mutationPod()
			c.mutate(is)
			var got []string
			for _, change := range fieldChanges(was, is) {
				got = append(got, change.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldChangesOfOtherObjects(t *testing.T) {
	u := func(image any) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": image}}}}}
	}
	secret := func(value string) runtime.Object {
		return &corev1.Secret{Data: map[string][]byte{"key": []byte(value)}}
	}
	for _, c := range []struct {
		was, is runtime.Object
		want    string
	}{
		{u("a"), u("b"), `spec.containers[0].image: "a" -> "b"`},
		{u("a"), u(int64(1)), `spec.containers[0].image: "a" -> 1`},
		{u(nil), u("a"), `spec.containers[0].image: null -> "a"`},
		{secret("a"), secret("b"), `data.key: "YQ==" -> "Yg=="`},
		{secret(""), secret(strings.Repeat("x", 1000)), `data.key: "" -> "` + strings.Repeat("eHh4", 49) + "eHh…"},
	} {
		got := fieldChanges(c.was, c.is)
		if len(got) != 1 || got[0].String() != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}
