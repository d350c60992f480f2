package ctrlcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/memory"
)

// Get reads one object. It makes the informer if there is none, unless the options
// forbid that.
func (c *ctrlCache) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	chosen := (&client.GetOptions{}).ApplyOptions(opts)
	timer := timerIn(opts)
	timer.start()
	k, err := kindOf(out, c.opts.Scheme)
	if err != nil {
		return err
	}
	e, err := c.extentToRead(k)
	if err != nil {
		return err
	}
	if !e.namespaced {
		key.Namespace = ""
	}
	home, ok := e.home(key.Namespace)
	if !ok {
		timer.stop()
		return unknownNamespace("get", key, k)
	}
	v, err := c.readTarget(ctx, informerKey{k, home}, e)
	if err != nil {
		return err
	}
	if !chosen.DisableReadYourWritesConsistency {
		if err := c.awaitKey(ctx, v.scopedInformer, key); err != nil {
			return err
		}
	}
	timer.stop()
	object, err := v.get(key)
	if err != nil {
		return err
	}
	shared := v.shared || ptr.Deref(chosen.UnsafeDisableDeepCopy, false)
	found, err := v.output(object, shared)
	if err != nil {
		return err
	}
	to, from := reflect.ValueOf(out), reflect.ValueOf(found)
	if from.Type() != to.Type() {
		return fmt.Errorf("cache had type %v, but %v was asked for: it is what the transform of %v returns", from.Type(), to.Type(), k.gvk)
	}
	to.Elem().Set(from.Elem())
	return nil
}

// get looks an object up as it is stored.
func (v readTarget) get(key client.ObjectKey) (any, error) {
	object, ok, err := v.informer.GetIndexer().GetByKey(storeKey(key))
	if err != nil {
		return nil, err
	}
	if !ok {
		// As in controller-runtime, what the message calls a resource is the kind.
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: v.gvk.Group, Resource: v.gvk.Kind}, key.Name)
	}
	return object, nil
}

func storeKey(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// errContinue is the whole text of controller-runtime's error, which users compare. A
// list from the cache is whole: leave Continue empty, or read from the API server.
var errContinue = errors.New("continue list option is not supported by the cache")

// noContinue is the token of a paged list, so that the next List of a caller that
// pages on returns an error.
const noContinue = "continue-not-supported"

// List reads the objects that the options choose, in no particular order.
func (c *ctrlCache) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	chosen := (&client.ListOptions{}).ApplyOptions(opts)
	if chosen.Continue != "" {
		return errContinue
	}
	timer := timerIn(opts)
	timer.start()
	k, err := kindOfItems(out, c.opts.Scheme)
	if err != nil {
		return err
	}
	e, err := c.extentToRead(k)
	if err != nil {
		return err
	}
	homes, err := e.homes(k, chosen.Namespace)
	if err != nil {
		timer.stop()
		return err
	}
	items := []runtime.Object{}
	for _, home := range homes {
		timer.start()
		v, err := c.readTarget(ctx, informerKey{k, home}, e)
		if err != nil {
			return err
		}
		if !chosen.DisableReadYourWritesConsistency {
			if err := c.awaitAll(ctx, v.scopedInformer, chosen.Namespace); err != nil {
				return err
			}
		}
		timer.stop()
		if items, err = v.list(items, chosen); err != nil {
			return err
		}
		if chosen.Limit > 0 && int64(len(items)) >= chosen.Limit {
			break
		}
	}
	if err := meta.SetList(out, items); err != nil {
		return err
	}
	out.SetContinue(noContinue)
	return nil
}

// unknownNamespace begins, as other errors of reads do, with controller-runtime's words,
// which programs look for.
func unknownNamespace(verb string, what any, k kind) error {
	return fmt.Errorf("unable to %s: %v because of unknown namespace for the cache; name it in the cache's options for %v", verb, what, k.gvk)
}

// homes are the places of a kind to look at for the objects of a namespace.
func (e *extent) homes(k kind, namespace string) ([]string, error) {
	if !e.namespaced || namespace == cache.AllNamespaces {
		return slices.Sorted(maps.Keys(e.configs)), nil
	}
	home, ok := e.home(namespace)
	if !ok {
		return nil, unknownNamespace("list", namespace, k)
	}
	return []string{home}, nil
}

// list appends what is chosen of this informer, up to the limit in all.
func (v readTarget) list(items []runtime.Object, chosen *client.ListOptions) ([]runtime.Object, error) {
	most := 0
	if chosen.Limit > 0 {
		most = int(chosen.Limit) - len(items)
	}
	objects, err := v.find(chosen, most)
	if err != nil {
		return nil, err
	}
	shared := v.shared || ptr.Deref(chosen.UnsafeDisableDeepCopy, false)
	items = slices.Grow(items, len(objects))
	for _, stored := range objects {
		item, err := v.output(stored, shared)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// find returns the stored objects that are chosen, at most so many, 0 for all.
func (v readTarget) find(chosen *client.ListOptions, most int) ([]any, error) {
	if v.replica != nil {
		if store, ok := memory.Of(v.replica); ok {
			return v.ask(store, chosen, most)
		}
	}
	return v.filter(chosen, most)
}
