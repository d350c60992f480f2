package cache

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

// Every function that gives a key or a name does so like client-go's, and fails
// when it does.
func TestKeysLikeClientGo(t *testing.T) {
	object := func(namespace, name string) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	same := func(t *testing.T, what string, obj any, ours, theirs func(any) (string, error)) {
		t.Helper()
		key, err := ours(obj)
		wantKey, wantErr := theirs(obj)
		if key != wantKey || (err == nil) != (wantErr == nil) || !strings.HasPrefix(fmt.Sprint(err), fmt.Sprint(wantErr)) {
			t.Errorf("%s of %v: got %q, %v; client-go gives %q, %v", what, obj, key, err, wantKey, wantErr)
		}
	}
	index := func(f IndexFunc) func(any) (string, error) {
		return func(obj any) (string, error) {
			values, err := f(obj)
			return fmt.Sprintf("%q", values), err
		}
	}
	name := func(f func(any) (ObjectName, error)) func(any) (string, error) {
		return func(obj any) (string, error) {
			n, err := f(obj)
			return n.Namespace + "|" + n.Name, err
		}
	}
	for _, obj := range []any{
		object("ns", "a"), object("", "a"), object("ns", ""), object("", ""),
		ExplicitKey("ns/a"), ExplicitKey("a/b/c"),
		DeletedFinalStateUnknown{Key: "ns/a"}, DeletedFinalStateUnknown{Key: "a/b/c"}, DeletedFinalStateUnknown{Key: "a"},
		nil, 42, &metav1.Status{},
	} {
		same(t, "MetaNamespaceKeyFunc", obj, MetaNamespaceKeyFunc, upstream.MetaNamespaceKeyFunc)
		same(t, "DeletionHandlingMetaNamespaceKeyFunc", obj, DeletionHandlingMetaNamespaceKeyFunc, upstream.DeletionHandlingMetaNamespaceKeyFunc)
		same(t, "MetaNamespaceIndexFunc", obj, index(MetaNamespaceIndexFunc), index(upstream.MetaNamespaceIndexFunc))
		same(t, "ObjectToName", obj, name(ObjectToName), name(upstream.ObjectToName))
		same(t, "DeletionHandlingObjectToName", obj, name(DeletionHandlingObjectToName), name(upstream.DeletionHandlingObjectToName))
	}
}

func TestSplitLikeClientGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-c/]{0,5}`).Draw(t, "key")
		namespace, name, err := SplitMetaNamespaceKey(key)
		wantNamespace, wantName, wantErr := upstream.SplitMetaNamespaceKey(key)
		if namespace != wantNamespace || name != wantName || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%q: got %q %q %v, want %q %q %v", key, namespace, name, err, wantNamespace, wantName, wantErr)
		}
		parsed, err := ParseObjectName(key)
		if err == nil && parsed.Namespace != "" && parsed.String() != key {
			t.Fatalf("%q becomes %q", key, parsed)
		}
	})
}

func TestObjectNameConversions(t *testing.T) {
	n := NewObjectName("ns", "a")
	if got := NamespacedNameAsObjectName(types.NamespacedName{Namespace: "ns", Name: "a"}); got != n {
		t.Errorf("got %v, want %v", got, n)
	}
	if got := MetaObjectToName(&metav1.ObjectMeta{Namespace: "ns", Name: "a"}); got != n {
		t.Errorf("got %v, want %v", got, n)
	}
}

func TestIndexFuncToKeyFunc(t *testing.T) {
	failure := errors.New("no index")
	for _, c := range []struct {
		values []string
		err    error
		key    string
		text   string
	}{
		{[]string{"a"}, nil, "a", ""},
		{nil, nil, "", "the index function gave none for a string"},
		{[]string{"a", "b"}, nil, "", "too many keys: [a b]"},
		{[]string{"a"}, failure, "", "no index"},
	} {
		key, err := IndexFuncToKeyFuncAdapter(func(any) ([]string, error) { return c.values, c.err })("object")
		if key != c.key || (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q, %v: got %q, %v", c.values, c.err, key, err)
		}
	}
}
