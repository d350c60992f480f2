package fieldpath_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/fieldpath"
)

func Example() {
	image := fieldpath.MustParse("spec.containers[*].image")

	typed := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "web:1"}, {Image: "proxy:2"}}}}
	decoded := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": "db:3"}}}}
	for _, object := range []any{typed, decoded} {
		values, err := image.Append(nil, object)
		fmt.Println(values, err)
	}
	// Output:
	// [web:1 proxy:2] <nil>
	// [db:3] <nil>
}

// A path that a type does not have is an error that helps.
func ExamplePath_Check() {
	_, err := fieldpath.Compile[*corev1.Pod]("spec.nodename")
	fmt.Println(err)
	_, err = fieldpath.Compile[*corev1.Pod]("spec.containers.image")
	fmt.Println(err)
	// Output:
	// field path "spec.nodename": spec of *v1.Pod has no "nodename"; the nearest is "spec.nodeName"
	// field path "spec.containers.image": spec.containers is a list: say "spec.containers[*].image" for all its elements, or spec.containers[0] for one
}

// Values sort, whatever they are; those that are missing come first.
func ExampleValue_Compare() {
	priority, err := fieldpath.Compile[*corev1.Pod]("spec.priority")
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Spec: corev1.PodSpec{Priority: new(int32(1000))}},
		{ObjectMeta: metav1.ObjectMeta{Name: "none"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Spec: corev1.PodSpec{Priority: new(int32(9))}},
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return priority.First(a).Compare(priority.First(b)) })
	for _, pod := range pods {
		fmt.Printf("%s %q\n", pod.Name, priority.First(pod))
	}
	// Output:
	// none ""
	// low "9"
	// high "1000"
}
