package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func listed(namespace, name, app string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
}

func listedNames(objects []any) string {
	var names []string
	for _, object := range objects {
		name, err := MetaNamespaceKeyFunc(object)
		if err != nil {
			name = err.Error()
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestListing(t *testing.T) {
	withIndex := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	withoutIndex := NewIndexer(MetaNamespaceKeyFunc, Indexers{})
	for _, indexer := range []Indexer{withIndex, withoutIndex} {
		for _, object := range []any{listed("x", "1", "web"), listed("x", "2", "db"), listed("y", "3", "web"), listed("", "4", "web")} {
			if err := indexer.Add(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	for _, c := range []struct {
		namespace string
		selector  labels.Selector
		want      string
	}{
		{"", labels.Everything(), "4 x/1 x/2 y/3"},
		{"", web, "4 x/1 y/3"},
		{"", labels.Nothing(), ""},
		{"x", labels.Everything(), "x/1 x/2"},
		{"x", web, "x/1"},
		{"x", labels.Nothing(), ""},
		{"z", labels.Everything(), ""},
	} {
		for how, indexer := range map[string]Indexer{"with index": withIndex, "without": withoutIndex} {
			var got []any
			collect := func(object any) { got = append(got, object) }
			if err := ListAllByNamespace(indexer, c.namespace, c.selector, collect); err != nil || listedNames(got) != c.want {
				t.Errorf("%s, namespace %q, selector %q: got %q, %v; want %q", how, c.namespace, c.selector, listedNames(got), err, c.want)
			}
			if c.namespace != "" {
				continue
			}
			got = nil
			if err := ListAll(indexer, c.selector, collect); err != nil || listedNames(got) != c.want {
				t.Errorf("%s, all, selector %q: got %q, %v; want %q", how, c.selector, listedNames(got), err, c.want)
			}
		}
	}
}

// An object without metadata has no labels to select by; it is only in the way
// when they are asked for.
func TestListingWhatHasNoMetadata(t *testing.T) {
	indexer := NewIndexer(func(obj any) (string, error) { return fmt.Sprint(obj), nil }, Indexers{})
	if err := indexer.Add(42); err != nil {
		t.Fatal(err)
	}
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	for what, err := range map[string]error{
		"all by label":          ListAll(indexer, web, func(any) {}),
		"a namespace, no index": ListAllByNamespace(indexer, "x", labels.Everything(), func(any) {}),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	var got []any
	if err := ListAll(indexer, labels.Everything(), func(object any) { got = append(got, object) }); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestGenericLister(t *testing.T) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	for _, object := range []any{listed("x", "a", "web"), listed("y", "b", "web"), listed("", "c", "web")} {
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	all := NewGenericLister(indexer, schema.GroupResource{Resource: "things"})
	for _, c := range []struct {
		what    string
		list    func(labels.Selector) ([]runtime.Object, error)
		get     func(string) (runtime.Object, error)
		content string
		has     string
		hasNot  string
	}{
		{"all", all.List, all.Get, "c x/a y/b", "c", "a"},
		{"x", all.ByNamespace("x").List, all.ByNamespace("x").Get, "x/a", "a", "b"},
		{"no namespace", all.ByNamespace("").List, all.ByNamespace("").Get, "c x/a y/b", "", "c"},
	} {
		objects, err := c.list(labels.Everything())
		var anys []any
		for _, object := range objects {
			anys = append(anys, object)
		}
		if err != nil || listedNames(anys) != c.content {
			t.Errorf("%s: listed %q, %v", c.what, listedNames(anys), err)
		}
		if c.has != "" {
			if object, err := c.get(c.has); err != nil || object == nil {
				t.Errorf("%s: get %s: %v, %v", c.what, c.has, object, err)
			}
		}
		if _, err := c.get(c.hasNot); !apierrors.IsNotFound(err) || err.Error() != fmt.Sprintf("things %q not found", c.hasNot) {
			t.Errorf("%s: get %s: %v", c.what, c.hasNot, err)
		}
	}
}
