package ctrlcache_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func selecting(text string) client.ListOption {
	return client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie(text)}
}

func TestFieldSelectors(t *testing.T) {
	x := running(t, cache.Options{})
	if err := x.cache.IndexField(x.ctx, &corev1.Pod{}, "status.phase", byPhase); err != nil {
		t.Fatal(err)
	}
	all := []string{"north/a", "north/b", "south/a", "south/c", "west/d"}
	podsAsUnstructured := emptyLakes()
	podsAsUnstructured.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	for _, c := range []struct {
		list     client.ObjectList
		selector string
		opts     []client.ListOption
		want     []string
	}{
		{&corev1.PodList{}, "", nil, all},
		{&corev1.PodList{}, "metadata.name=a", nil, []string{"north/a", "south/a"}},
		{&corev1.PodList{}, "metadata.name=a", []client.ListOption{client.InNamespace("south")}, []string{"south/a"}},
		{&corev1.PodList{}, "metadata.name=a,metadata.namespace=north", nil, []string{"north/a"}},
		{&corev1.PodList{}, "metadata.name=none,metadata.namespace=north", nil, nil},
		{&corev1.PodList{}, "metadata.namespace=south", []client.ListOption{client.InNamespace("north")}, nil},
		{&corev1.PodList{}, "metadata.namespace!=south,metadata.namespace!=west", nil, []string{"north/a", "north/b"}},
		{&corev1.PodList{}, "spec.nodeName=n1", nil, []string{"north/a", "south/a", "west/d"}},
		{&corev1.PodList{}, "spec.nodeName==n1,status.phase!=Pending", nil, []string{"north/a", "west/d"}},
		{&corev1.PodList{}, "status.phase=Pending,spec.nodeName!=n1", nil, []string{"north/b"}},
		{&corev1.PodList{}, "status.phase=Pending,spec.nodeName=n1", []client.ListOption{client.InNamespace("south")}, []string{"south/a"}},
		{&corev1.PodList{}, "status.phase!=Pending", []client.ListOption{client.InNamespace("south")}, []string{"south/c"}},
		{&corev1.PodList{}, "status.phase=Running,status.phase=Pending", nil, nil},
		{&corev1.PodList{}, "spec.hostNetwork=false,metadata.name!=a", nil, []string{"north/b", "south/c", "west/d"}},
		{&corev1.PodList{}, "spec.priority=", nil, all},
		{&corev1.PodList{}, "status.startTime!=", nil, nil},
		{&corev1.PodList{}, "metadata.labels.lake=deep,metadata.namespace!=west", nil, []string{"north/a", "north/b"}},
		{&corev1.PodList{}, "metadata.labels.app.example.com/kind=x", nil, []string{"north/a", "north/b", "south/a", "west/d"}},
		{&corev1.NodeList{}, "metadata.name=n1", nil, []string{"n1"}},
		{&corev1.NodeList{}, "metadata.name!=n1", nil, nil},
		{emptyLakes(), "spec.depth=1642", nil, []string{"north/baikal"}},
		{emptyLakes(), "spec.salty=false,spec.depth!=1642", nil, []string{"south/titicaca"}},
		{emptyLakes(), "spec.unknown=,kind=Lake", nil, []string{"north/baikal", "south/titicaca"}},
		{podsAsUnstructured, "metadata.labels.app.example.com/kind=x,spec.nodeName=n2", nil, []string{"north/b"}},
		{emptyMetadatas(podKind), "metadata.labels.lake=shallow", nil, []string{"south/a"}},
	} {
		got := x.names(c.list, append(c.opts, selecting(c.selector))...)
		if !slices.Equal(got, c.want) {
			t.Errorf("%T %q: %v, wanted %v", c.list, c.selector, got, c.want)
		}
	}
	if got := x.names(&corev1.PodList{}, client.MatchingFieldsSelector{Selector: fields.Nothing()}); len(got) > 0 {
		t.Errorf("nothing selects %v", got)
	}
}

func TestFieldSelectorsThatCannotBe(t *testing.T) {
	x := running(t, cache.Options{})
	for _, c := range []struct {
		list            client.ObjectList
		selector, tells string
	}{
		{&corev1.PodList{}, "spec.nodename=n1", `v1.PodSpec has no field "nodename"`},
		{&corev1.PodList{}, "spec.containers=main", "[]v1.Container and not one value"},
		{&corev1.PodList{}, "spec=x", "v1.PodSpec and not one value"},
		{&corev1.PodList{}, "spec.nodeName.length=2", "string has no fields"},
		{&corev1.PodList{}, "name=a", `has no field "name"`},
		{emptyMetadatas(podKind), "spec.nodeName=n1", `has no field "spec"`},
		{emptyLakes(), "spec=x", "not one value"},
	} {
		for range 2 { // the second time metadata is that of the pods
			err := x.cache.List(x.ctx, c.list, selecting(c.selector))
			if err == nil || !strings.Contains(err.Error(), c.tells) {
				t.Errorf("%T %q: %v, wanted %s", c.list, c.selector, err, c.tells)
			}
		}
	}
}

// TestFieldSelectorsAgainstAModel compares random selections over random pods, with
// and without indexes, with a plain filter.
func TestFieldSelectorsAgainstAModel(t *testing.T) {
	read := map[string]func(*corev1.Pod) string{
		"metadata.name":      func(p *corev1.Pod) string { return p.Name },
		"metadata.namespace": func(p *corev1.Pod) string { return p.Namespace },
		"spec.nodeName":      func(p *corev1.Pod) string { return p.Spec.NodeName },
		"spec.hostname":      func(p *corev1.Pod) string { return p.Spec.Hostname },
		"status.phase":       func(p *corev1.Pod) string { return string(p.Status.Phase) },
	}
	paths := slices.Sorted(maps.Keys(read))
	values := []string{"", "a", "b", "c"}
	server := newAPIServer(t)
	var pods []*corev1.Pod
	for i, namespace := range []string{"a", "b", "c"} {
		for j, name := range []string{"a", "b", "c", "d"} {
			o := pod(namespace, name, values[(i+j)%4], values[(2*i+j)%4], "")
			o["spec"].(map[string]any)["hostname"] = values[(i*j)%4]
			server.put("pods", o)
			pods = append(pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       corev1.PodSpec{NodeName: values[(i+j)%4], Hostname: values[(i*j)%4]},
				Status:     corev1.PodStatus{Phase: corev1.PodPhase(values[(2*i+j)%4])},
			})
		}
	}
	plain := runningOn(t, server, cache.Options{})
	indexed := runningOn(t, server, cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, cache.AllNamespaces: {}}})
	for _, path := range []string{"spec.nodeName", "status.phase"} {
		if err := indexed.cache.IndexField(indexed.ctx, &corev1.Pod{}, path, func(o client.Object) []string { return []string{read[path](o.(*corev1.Pod))} }); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		namespace := rapid.SampledFrom(values).Draw(r, "namespace")
		var terms []string
		for range rapid.IntRange(0, 3).Draw(r, "terms") {
			terms = append(terms, rapid.SampledFrom(paths).Draw(r, "path")+rapid.SampledFrom([]string{"=", "==", "!="}).Draw(r, "op")+rapid.SampledFrom(values).Draw(r, "value"))
		}
		selector := fields.ParseSelectorOrDie(strings.Join(terms, ","))
		want := []string{}
		for _, p := range pods {
			have := fields.Set{}
			for path, value := range read {
				have[path] = value(p)
			}
			if (namespace == "" || p.Namespace == namespace) && selector.Matches(have) {
				want = append(want, p.Namespace+"/"+p.Name)
			}
		}
		for name, x := range map[string]*stage{"plain": plain, "indexed": indexed} {
			got := x.names(&corev1.PodList{}, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: selector})
			if !slices.Equal(got, want) {
				r.Fatal(fmt.Sprintf("%s: %q in %q: %v, wanted %v", name, selector, namespace, got, want))
			}
		}
	})
}
