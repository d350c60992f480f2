package ctrlcache_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tarncache "github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/memory"
)

// manyPods is a server with pods that differ in node, phase and label.
func manyPods(t *testing.T) *apiServer {
	server := newAPIServer(t)
	values := []string{"", "a", "b", "c"}
	for i, namespace := range []string{"a", "ab", "b"} {
		for j := range 12 {
			server.put("pods", pod(namespace, fmt.Sprintf("%c%d", 'a'+j%3, j), values[(i+j)%4], values[(2*i+j/2)%4], values[(i*j)%4]))
		}
	}
	return server
}

// memoryOf is the store of the pods' informer.
func memoryOf(t *testing.T, x *stage) *memory.Store[any] {
	t.Helper()
	informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	replica, ok := tarncache.ReplicaOf(informer.(toolscache.SharedIndexInformer))
	if !ok {
		t.Fatal("the informer is not ours")
	}
	store, ok := memory.Of(replica)
	if !ok {
		t.Fatal("the replica is not in memory")
	}
	return store
}

// TestListsAgainstAModel compares lists by labels, fields, namespace and limit with
// a plain filter: over our informers, with indexes and without, and over client-go's.
func TestListsAgainstAModel(t *testing.T) {
	server := manyPods(t)
	indexed := runningOn(t, server, cache.Options{})
	for field, read := range map[string]client.IndexerFunc{"spec.nodeName": byNode, "status.phase": byPhase} {
		if err := indexed.cache.IndexField(indexed.ctx, &corev1.Pod{}, field, read); err != nil {
			t.Fatal(err)
		}
	}
	if err := memoryOf(t, indexed).AddIndex("lake", memory.IndexPath[any]("metadata.labels[lake]")); err != nil {
		t.Fatal(err)
	}
	stages := map[string]*stage{
		"plain": runningOn(t, server, cache.Options{}), "indexed": indexed,
		"client-go": runningOn(t, server, cache.Options{NewInformer: toolscache.NewSharedIndexInformer}),
	}
	var all corev1.PodList
	if err := indexed.cache.List(indexed.ctx, &all); err != nil || len(all.Items) != 36 {
		t.Fatal(len(all.Items), err)
	}
	field := rapid.SampledFrom([]string{"metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"})
	value := rapid.SampledFrom([]string{"", "a", "b", "c", "a0", "b1"})
	rapid.Check(t, func(r *rapid.T) {
		var terms []string
		for range rapid.IntRange(0, 3).Draw(r, "terms") {
			terms = append(terms, field.Draw(r, "field")+rapid.SampledFrom([]string{"=", "!="}).Draw(r, "operator")+value.Draw(r, "value"))
		}
		byField := fields.ParseSelectorOrDie(strings.Join(terms, ","))
		byLabel := rapid.SampledFrom([]labels.Selector{
			nil, labels.Everything(), labels.Nothing(), label("a"), parsed(t, "lake in (a,b)"), parsed(t, "lake!=a"), parsed(t, "!lake"), parsed(t, "lake,lake notin (c)"), upTo{"b"},
		}).Draw(r, "labels")
		namespace := rapid.SampledFrom([]string{"", "", "a", "ab", "none"}).Draw(r, "namespace")
		limit := rapid.SampledFrom([]int{-1, 0, 1, 3, 100}).Draw(r, "limit")
		var want []string
		for _, p := range all.Items {
			have := fields.Set{"metadata.name": p.Name, "metadata.namespace": p.Namespace, "spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase)}
			if (namespace == "" || p.Namespace == namespace) && byField.Matches(have) && (byLabel == nil || byLabel.Matches(labels.Set(p.Labels))) {
				want = append(want, p.Namespace+"/"+p.Name)
			}
		}
		slices.Sort(want)
		opts := []client.ListOption{client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: byField}, client.Limit(limit)}
		if byLabel != nil {
			opts = append(opts, client.MatchingLabelsSelector{Selector: byLabel})
		}
		for name, x := range stages {
			got := x.names(&corev1.PodList{}, opts...)
			size := len(want)
			if limit > 0 {
				size = min(size, limit)
			}
			if len(got) != size || slices.ContainsFunc(got, func(key string) bool { return !slices.Contains(want, key) }) || len(slices.Compact(got)) != size {
				r.Fatalf("%s: %q, labels %v in %q, at most %d: %v, wanted %d of %v", name, byField, byLabel, namespace, limit, got, size, want)
			}
		}
	})
}

func parsed(t *testing.T, text string) labels.Selector {
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// upTo is a selector of somebody's own, which has no requirements to read.
type upTo struct{ last string }

func (u upTo) Matches(l labels.Labels) bool              { return l.Has("lake") && l.Get("lake") <= u.last }
func (u upTo) Empty() bool                               { return false }
func (u upTo) String() string                            { return "up to " + u.last }
func (u upTo) Add(...labels.Requirement) labels.Selector { return u }
func (u upTo) Requirements() (labels.Requirements, bool) { return nil, true }
func (u upTo) DeepCopySelector() labels.Selector         { return u }
func (u upTo) RequiresExactMatch(string) (string, bool)  { return "", false }

// asked counts the objects that a selector is asked about.
type asked struct {
	upTo
	times *int
}

func (a asked) Matches(l labels.Labels) bool {
	*a.times++
	return true
}

// TestListsLookAtFewObjects counts the objects that are looked at: those of the
// smallest index, and no more than the limit needs.
func TestListsLookAtFewObjects(t *testing.T) {
	x := runningOn(t, manyPods(t), cache.Options{})
	ctx := context.Background()
	for field, read := range map[string]client.IndexerFunc{
		"all":  func(client.Object) []string { return []string{"yes"} },
		"rare": func(o client.Object) []string { return []string{o.GetName()[1:]} },
	} {
		if err := x.cache.IndexField(ctx, &corev1.Pod{}, field, read); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		opts []client.ListOption
		want int
	}{
		{nil, 36},
		{[]client.ListOption{client.Limit(5)}, 6},
		{[]client.ListOption{client.InNamespace("a")}, 12},
		{[]client.ListOption{client.InNamespace("a"), client.Limit(2)}, 3},
		{[]client.ListOption{client.MatchingFields{"all": "yes", "rare": "4"}}, 3},
		{[]client.ListOption{client.MatchingFields{"rare": "4", "all": "yes"}, client.InNamespace("ab")}, 1},
		{[]client.ListOption{client.MatchingFields{"metadata.name": "a0"}, client.InNamespace("ab")}, 1},
	} {
		times := 0
		x.names(&corev1.PodList{}, append(c.opts, client.MatchingLabelsSelector{Selector: asked{times: &times}})...)
		if times != c.want {
			t.Errorf("%v: %d objects were asked, wanted %d", c.opts, times, c.want)
		}
	}
}
