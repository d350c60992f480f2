package ctrlcache_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/ctrlcache"
)

// deleting is a cache whose copy of the pods stands still, and its client.
func deleting(t *testing.T, opts cache.Options) (*stage, client.Client) {
	x := running(t, opts)
	c := x.client(ctrlcache.NewClient)
	x.names(&corev1.PodList{})
	x.server.hold("")
	return x, c
}

var podA = client.ObjectKey{Namespace: "north", Name: "a"}

// TestDeleteOfWhatTheCacheNeverSaw must not take the absence of an object that is
// still to come for its deletion.
func TestDeleteOfWhatTheCacheNeverSaw(t *testing.T) {
	x, c := deleting(t, cache.Options{})
	if err := c.Create(x.ctx, newPod("north", "brief")); err != nil {
		t.Fatal(err)
	}
	x.server.put("pods", pod("south", "somebody-elses", "n1", "Running", ""))
	if err := c.Delete(x.ctx, newPod("north", "brief")); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(x.ctx, newPod("south", "somebody-elses")); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if x.late("", func() error { return c.List(x.ctx, &pods) }) {
		t.Error("the list did not wait")
	}
	if got := keysOf(x, &pods); !slices.Equal(got, []string{"north/a", "north/b", "south/a", "south/c", "west/d"}) {
		t.Errorf("the list shows %v", got)
	}
}

func TestDeleteOfWhatStays(t *testing.T) {
	x, c := deleting(t, cache.Options{})
	if err := c.Patch(x.ctx, newPod("north", "a"), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["x/y"]}}`))); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(x.ctx, newPod("north", "a")); err != nil {
		t.Fatal(err)
	}
	var got corev1.Pod
	if x.late("", func() error { return c.Get(x.ctx, podA, &got) }) {
		t.Error("the read did not wait")
	}
	if got.DeletionTimestamp == nil {
		t.Error("the read does not show that the pod is to go")
	}
}

func TestDeleteAndCreateAgain(t *testing.T) {
	x, c := deleting(t, cache.Options{})
	if err := c.Delete(x.ctx, newPod("north", "a")); err != nil {
		t.Fatal(err)
	}
	again := newPod("north", "a")
	if err := c.Create(x.ctx, again); err != nil {
		t.Fatal(err)
	}
	var got corev1.Pod
	if x.late("", func() error { return c.Get(x.ctx, podA, &got) }) {
		t.Error("the read did not wait")
	}
	if got.UID != again.UID {
		t.Errorf("the read shows %s, wanted the new pod %s", got.UID, again.UID)
	}
}

func TestDeleteAllOf(t *testing.T) {
	x, c := deleting(t, cache.Options{})
	if err := c.DeleteAllOf(x.ctx, &corev1.Pod{}, client.InNamespace("north")); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if x.late("", func() error { return c.List(x.ctx, &pods) }) {
		t.Error("the list did not wait")
	}
	if got := keysOf(x, &pods); !slices.Equal(got, []string{"south/a", "south/c", "west/d"}) {
		t.Errorf("the list shows %v", got)
	}
}

// TestWritesThatNeedNoWait would hang if they were waited for.
func TestWritesThatNeedNoWait(t *testing.T) {
	x, c := deleting(t, cache.Options{DefaultLabelSelector: label("deep")})
	if err := c.Delete(x.ctx, newPod("north", "none")); !apierrors.IsNotFound(err) {
		t.Errorf("deleting what is not there: %v", err)
	}
	if err := c.Create(x.ctx, newPod("north", "a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating what is there: %v", err)
	}
	if err := c.Create(x.ctx, newPod("north", "outside")); err != nil { // has no label that is selected
		t.Fatal(err)
	}
	if err := c.Create(x.ctx, newPod("north", "uncared"), client.DisableReadYourWritesConsistency); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(x.ctx, podA, &corev1.Pod{}); err != nil {
		t.Error(err)
	}
	if got := x.namesBy(c); !slices.Equal(got, []string{"north/a", "north/b", "west/d"}) {
		t.Errorf("the list shows %v", got)
	}
}

func (x *stage) namesBy(c client.Client) []string {
	var pods corev1.PodList
	if err := c.List(x.ctx, &pods); err != nil {
		x.Fatal(err)
	}
	return keysOf(x, &pods)
}

// TestWritesInOneFormAreReadInAll reads metadata and unstructured after a typed
// write, each from a copy of its own.
func TestWritesInOneFormAreReadInAll(t *testing.T) {
	x := running(t, cache.Options{})
	c := x.client(ctrlcache.NewClient)
	lakes := emptyLakes()
	lakes.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	if _, err := x.cache.GetInformer(x.ctx, emptyMetadata(podKind)); err != nil {
		t.Fatal(err)
	}
	x.names(lakes)
	x.names(&corev1.PodList{})
	x.server.hold("")
	if err := c.Create(x.ctx, newPod("north", "new")); err != nil {
		t.Fatal(err)
	}
	read := func() error {
		for _, list := range []client.ObjectList{lakes, emptyMetadatas(podKind), &corev1.PodList{}} {
			if err := c.List(x.ctx, list); err != nil {
				return err
			}
			if !slices.Contains(keysOf(x, list), "north/new") {
				return fmt.Errorf("%T does not show the write", list)
			}
		}
		return nil
	}
	if x.late("", read) {
		t.Error("the reads did not wait")
	}
}

// TestReadsWaitForWritesUnderWay reads while the server has not answered yet.
func TestReadsWaitForWritesUnderWay(t *testing.T) {
	x := running(t, cache.Options{})
	c := x.client(ctrlcache.NewClient)
	x.names(&corev1.PodList{})
	arrived, proceed := make(chan struct{}), make(chan struct{})
	x.server.mu.Lock()
	x.server.refuse = func(r *http.Request) (int, string) {
		if r.Method == http.MethodPost {
			close(arrived)
			<-proceed
		}
		return 0, ""
	}
	x.server.mu.Unlock()
	written, read := make(chan error, 1), make(chan error, 1)
	go func() { written <- c.Create(x.ctx, newPod("north", "new")) }()
	<-arrived
	go func() { read <- c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "new"}, &corev1.Pod{}) }()
	select {
	case err := <-read:
		t.Errorf("the read did not wait: %v", err)
		read <- nil
	case <-time.After(30 * time.Millisecond):
	}
	if err := c.Get(x.ctx, podA, &corev1.Pod{}); err != nil {
		t.Errorf("a read of another key: %v", err)
	}
	close(proceed)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Errorf("after the write: %v", err)
	}
}

// TestWritesAreForgotten bounds what is remembered by a client that never reads.
func TestWritesAreForgotten(t *testing.T) {
	for name, read := range map[string]bool{"cached": true, "not cached": false} {
		t.Run(name, func(t *testing.T) {
			x := running(t, cache.Options{})
			c := x.client(ctrlcache.NewClient)
			if read {
				x.names(&corev1.PodList{})
			}
			for i := range 300 {
				p := newPod("north", fmt.Sprint("p", i))
				if err := c.Create(x.ctx, p); err != nil {
					t.Fatal(err)
				}
				if read {
					x.awaitVersion("north", p.Name, p.ResourceVersion)
				}
			}
			if n := ctrlcache.Marks(x.cache, podKind); n > 70 {
				t.Errorf("%d of 300 writes are remembered that every copy shows", n)
			}
		})
	}
}

func TestClientWithoutTheOption(t *testing.T) {
	x := running(t, cache.Options{})
	for name, options := range map[string]*client.CacheOptions{
		"no cache": nil, "off": {Reader: x.cache}, "another's cache": {Reader: otherCache{x.cache}, EnableReadYourWritesConsistency: ptr.To(true)},
	} {
		c, err := ctrlcache.NewClient(x.server.config(), client.Options{Mapper: newMapper(), Cache: options})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.Get(x.ctx, podA, &corev1.Pod{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type otherCache struct{ cache.Cache }

// TestWritesOutsideTheFieldSelector would wait for a bookmark if they were waited for: no
// event shows them.
func TestWritesOutsideTheFieldSelector(t *testing.T) {
	for selector, outside := range map[string]client.ObjectKey{
		"metadata.name=a":           {Namespace: "north", Name: "other"},
		"metadata.name!=other":      {Namespace: "north", Name: "other"},
		"metadata.namespace=north":  {Namespace: "south", Name: "a"},
		"metadata.namespace!=south": {Namespace: "south", Name: "a"},
	} {
		t.Run(selector, func(t *testing.T) {
			x, c := deleting(t, cache.Options{DefaultFieldSelector: fields.ParseSelectorOrDie(selector)})
			if outside.Name == "a" {
				if err := c.Patch(x.ctx, newPod(outside.Namespace, outside.Name), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"nodeName":"n5"}}`))); err != nil {
					t.Fatal(err)
				}
			} else if err := c.Create(x.ctx, newPod(outside.Namespace, outside.Name)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(x.ctx, 5*time.Second)
			defer cancel()
			if err := c.List(ctx, &corev1.PodList{}); err != nil {
				t.Errorf("a list of others: %v", err)
			}
			if err := c.Get(ctx, outside, &corev1.Pod{}); !apierrors.IsNotFound(err) {
				t.Errorf("what is not selected was read with: %v", err)
			}
			if err := c.Delete(x.ctx, newPod(outside.Namespace, outside.Name)); err != nil {
				t.Fatal(err)
			}
			if err := c.List(ctx, &corev1.PodList{}); err != nil {
				t.Errorf("a list after the delete: %v", err)
			}
		})
	}
}

// TestWritesOutsideTheLabelSelector writes objects that the cache does not select. Reads must
// not wait for them: no event comes, and they would wait for a bookmark.
func TestWritesOutsideTheLabelSelector(t *testing.T) {
	outside := newPod("north", "outside")
	outside.Labels = map[string]string{"lake": "shallow"}
	for name, write := range map[string]func(*stage, client.Client) error{
		"with other labels each time": func(x *stage, c client.Client) error {
			return c.Patch(x.ctx, outside.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"lake":"flat"}}}`)))
		},
		"all deleted": func(x *stage, c client.Client) error {
			return c.DeleteAllOf(x.ctx, &corev1.Pod{}, client.InNamespace("north"), client.MatchingLabels(outside.Labels))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, c := deleting(t, cache.Options{DefaultLabelSelector: label("deep")})
			if err := c.Create(x.ctx, outside.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if err := write(x, c); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(x.ctx, 5*time.Second)
			defer cancel()
			if err := c.List(ctx, &corev1.PodList{}); err != nil {
				t.Errorf("a list of others: %v", err)
			}
		})
	}
}

// TestWriteInPlaceOfWhatIsSelected creates an object that the cache does not select, under the
// name of an object that it shows. The last event is the delete of that object.
func TestWriteInPlaceOfWhatIsSelected(t *testing.T) {
	x, c := deleting(t, cache.Options{DefaultLabelSelector: label("deep")})
	x.server.remove("pods", podA.Namespace, podA.Name)
	outside := newPod(podA.Namespace, podA.Name)
	outside.Labels = map[string]string{"lake": "shallow"}
	if err := c.Create(x.ctx, outside); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(x.ctx, 5*time.Second)
	defer cancel()
	var err error
	if x.late("", func() error { err = c.Get(ctx, podA, &corev1.Pod{}); return nil }) {
		t.Error("the read did not wait")
	}
	if !apierrors.IsNotFound(err) {
		t.Errorf("what is not selected was read with: %v", err)
	}
}

// TestDeleteWithoutUID deletes an object of a copy whose transform keeps little of the
// metadata.
func TestDeleteWithoutUID(t *testing.T) {
	x, c := deleting(t, cache.Options{DefaultTransform: func(object any) (any, error) {
		if o, ok := object.(client.Object); ok {
			o.SetUID("")
		}
		return object, nil
	}})
	var got corev1.Pod
	if err := c.Get(x.ctx, podA, &got); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(x.ctx, &got); err != nil {
		t.Fatal(err)
	}
	var err error
	if x.late("", func() error {
		err = c.Get(x.ctx, podA, &corev1.Pod{})
		return client.IgnoreNotFound(err)
	}) {
		t.Error("the read did not wait")
	}
	if !apierrors.IsNotFound(err) {
		t.Errorf("deleted, but read as: %v", err)
	}
	if err := c.Create(x.ctx, newPod("north", "a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(x.ctx, podA, &corev1.Pod{}); err != nil {
		t.Errorf("created again, but read as: %v", err)
	}
}

// TestWritesBeforeARestore reads after the server was restored from a backup: no state of
// it has the version of an earlier write for long.
func TestWritesBeforeARestore(t *testing.T) {
	for what, write := range map[string]func(*stage, client.Client) error{
		"create": func(x *stage, c client.Client) error { return c.Create(x.ctx, newPod("north", "new")) },
		"create and read": func(x *stage, c client.Client) error {
			if err := c.Create(x.ctx, newPod("north", "new")); err != nil {
				return err
			}
			return c.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "new"}, &corev1.Pod{})
		},
		"delete": func(x *stage, c client.Client) error { return c.Delete(x.ctx, newPod("north", "a")) },
	} {
		t.Run(what, func(t *testing.T) {
			x := running(t, cache.Options{})
			c := x.client(ctrlcache.NewClient)
			var before corev1.Pod
			if err := c.Get(x.ctx, podA, &before); err != nil {
				t.Fatal(err)
			}
			if err := write(x, c); err != nil {
				t.Fatal(err)
			}
			x.server.restore("pods", before.UID, 50)
			x.until("the restored state", func() bool {
				var p corev1.Pod
				err := x.cache.Get(x.ctx, podA, &p, client.DisableReadYourWritesConsistency)
				return err == nil && p.ResourceVersion == "50"
			})
			ctx, cancel := context.WithTimeout(x.ctx, 5*time.Second)
			defer cancel()
			var pods corev1.PodList
			if err := c.List(ctx, &pods); err != nil {
				t.Errorf("a list after the restore: %v", err)
			}
			if got := keysOf(x, &pods); !slices.Equal(got, []string{"north/a"}) {
				t.Errorf("the list shows %v", got)
			}
			lakes := emptyLakes()
			lakes.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
			if err := c.List(ctx, lakes); err != nil {
				t.Errorf("a list from a new informer: %v", err)
			}
			if err := c.Create(ctx, newPod("north", "later")); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "north", Name: "later"}, &corev1.Pod{}); err != nil {
				t.Errorf("a write after the restore was read with: %v", err)
			}
		})
	}
}
