package memory_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
)

func somePods() *memory.Store[*corev1.Pod] {
	pods := memory.New[*corev1.Pod]()
	for i, name := range []string{"web-0", "web-1", "db-0", "web-2", "job-0"} {
		app, _, _ := cut(name)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"app": app}}}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", i%2+1)
		pod.Spec.Priority = new(int32(10 * (i % 3)))
		_ = pods.Put(tarn.Key("shop/"+name), pod)
	}
	return pods
}

func cut(name string) (app, number string, ok bool) {
	return name[:len(name)-2], name[len(name)-1:], true
}

// An index by field path needs no function, and queries find it by themselves.
func ExampleStore_AddIndex() {
	pods := somePods()
	if err := pods.AddIndex("node", memory.IndexPath[*corev1.Pod]("spec.nodeName")); err != nil {
		fmt.Println(err)
		return
	}
	onNode, _ := pods.Lookup("node", "node-1")
	for key := range onNode {
		fmt.Println(key)
	}
	err := pods.AddIndex("phase", memory.IndexPath[*corev1.Pod]("status.fase"))
	fmt.Println(err)
	// Output:
	// shop/db-0
	// shop/job-0
	// shop/web-0
	// index "phase" cannot be made: field path "status.fase": status of *v1.Pod has no "fase"; the nearest is "status.phase"; no index was added
}

// The values of an index are ordered: numbers as numbers.
func ExampleStore_LookupRange() {
	pods := somePods()
	_ = pods.AddIndex("priority", memory.IndexPath[*corev1.Pod]("spec.priority"))

	high, _ := pods.LookupRange("priority", []any{10}, nil)
	for key, pod := range high {
		fmt.Println(key, *pod.Spec.Priority)
	}
	// Output:
	// shop/job-0 10
	// shop/web-1 10
	// shop/db-0 20
}

// A query with a selector, sorted, in pages.
func ExampleStore_Select() {
	pods := somePods()
	_ = pods.AddIndex("app", memory.IndexPath[*corev1.Pod]("metadata.labels[app]"))

	web := query.Where().Labels("app in (web,job)").Sort("-spec.priority", "metadata.name").Limit(2)
	for {
		page, err := pods.Select(web)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(page.Keys)
		if page.Continue == "" {
			break
		}
		web = web.After(page.Continue)
	}
	plan, _ := pods.Explain(web)
	fmt.Println(plan)
	// Output:
	// [shop/job-0 shop/web-1]
	// [shop/web-0 shop/web-2]
	// index app: [metadata.labels.app in ("job", "web")]; 4 of 5 examined; sort by [-spec.priority metadata.name]; limit 2
}

// A snapshot does not change while the store does.
func ExampleStore_Snapshot() {
	pods := somePods()
	before := pods.Snapshot()
	defer before.Close()
	pods.Remove("shop/web-0")

	_, then := before.Get("shop/web-0")
	_, now := pods.Get("shop/web-0")
	fmt.Println(before.Len(), then, pods.Len(), now)
	// Output: 5 true 4 false
}

// Wait for a change of what was read.
func ExampleStore_PrefixWatch() {
	pods := somePods()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // the store forgets the watch then
	web, changed := pods.PrefixWatch(ctx, "shop/web-")
	n := 0
	for range web {
		n++
	}
	pods.Remove("shop/web-1")
	<-changed
	fmt.Println("there were", n)
	// Output: there were 3
}
