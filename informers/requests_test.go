package informers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestSameRequests starts the informers of all resources and compares what
// reaches the server, and the types that synced, with client-go's.
func TestSameRequests(t *testing.T) {
	for name, c := range map[string]choices{
		"plain":     {},
		"namespace": {namespace: "north"},
		"tweak": {namespace: "south", tweak: func(o *metav1.ListOptions) {
			o.LabelSelector, o.FieldSelector, o.Limit = "lake=deep", "metadata.name=a", 7
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := requestsOf(t, factories["client-go"], c), requestsOf(t, factories["ours"], c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests or types differ (-client-go +ours):\n%s", diff)
			}
			if len(want) != 3*len(table()) {
				t.Errorf("%d lines, wanted a list, a watch and a type for each of %d resources", len(want), len(table()))
			}
		})
	}
}

// requestsOf runs the informers of every resource and returns, sorted, the
// requests that they made and their types.
func requestsOf(t *testing.T, make maker, c choices) (seen []string) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := make(client, c, nil)
		for resource := range known().byResource {
			if _, err := f.ForResource(resource); err != nil {
				t.Fatal(err)
			}
		}
		f.StartWithContext(ctx)
		result := f.WaitForCacheSyncWithContext(ctx)
		if err := result.AsError(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, action := range client.Actions() {
			seen = append(seen, request(action))
		}
		for object := range result.Synced {
			seen = append(seen, fmt.Sprintf("synced %s %v", object.Elem().PkgPath(), object))
		}
		cancel()
		f.Shutdown()
	})
	slices.Sort(seen)
	return seen
}

// request describes a request. The timeout of a watch is random, so only its range is
// given.
func request(action clienttesting.Action) string {
	var opts metav1.ListOptions
	switch a := action.(type) {
	case clienttesting.ListActionImpl:
		opts = a.ListOptions
	case clienttesting.WatchActionImpl:
		opts = a.ListOptions
	}
	if s := opts.TimeoutSeconds; s != nil && 300 <= *s && *s < 600 {
		*s = 300
	}
	return strings.Join([]string{action.GetVerb(), action.GetResource().String(), action.GetNamespace(), opts.String()}, " ")
}
