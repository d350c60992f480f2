package ctrlcache

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tarnproject/tarn"
)

// Delete deletes an object, and makes reads wait until the cache shows that: that
// it is gone or, with finalizers, that it has a deletion timestamp.
func (c *ownClient) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	chosen := (&client.DeleteOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DisableReadYourWritesConsistency, chosen.DryRun) {
		return c.Client.Delete(ctx, object, opts...)
	}
	gvk, err := apiutil.GVKForObject(object, c.options.Scheme)
	if err != nil {
		return err
	}
	mapping, err := c.options.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	key := c.keyOf(gvk, object)
	if key.Name == "" || namespaced && key.Namespace == "" {
		// What the server would say to such a request can be taken for the absence of
		// the object. The client itself refuses to send it.
		return c.Client.Delete(ctx, object, opts...)
	}
	f := c.cache.writes.begin(gvk, key)
	marks := map[client.ObjectKey]mark{}
	defer func() { c.cache.finishWrite(gvk, marks, f) }()
	last, err := c.lastState(ctx, gvk, object)
	if err != nil {
		return err
	}
	answer, err := c.delete(ctx, mapping, key, chosen)
	if err != nil {
		return err
	}
	m := afterDelete(last, answer)
	if last.gone != "" && m.gone != "" && m.gone != last.gone && m.version == last.version {
		m = c.anotherDeleted(ctx, gvk, key.Namespace, last, m)
	}
	marks[key] = m
	return nil
}

// anotherDeleted is the mark of a delete of another object than the caller had, which was
// deleted before. Nothing tells at which version the other one existed, so a copy must reach
// one from after its delete. Without permission to list there is at least the first delete.
func (c *ownClient) anotherDeleted(ctx context.Context, gvk schema.GroupVersionKind, namespace string, last, m mark) mark {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind{gvk: gvk}.listKind())
	if err := c.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return last
	}
	return mark{version: tarn.Version(list.ResourceVersion), gone: m.gone, uid: m.uid}
}

// lastState is the state of an object before its delete: a version at which it
// existed, and its uid. Without the version, a copy that has not yet seen the
// object could not be distinguished from one that has seen its delete. A client
// without permission to read the object has to do without.
func (c *ownClient) lastState(ctx context.Context, gvk schema.GroupVersionKind, object client.Object) (mark, error) {
	if object.GetUID() != "" && object.GetResourceVersion() != "" && !c.cache.hides(gvk, object) {
		return mark{version: tarn.Version(object.GetResourceVersion()), gone: object.GetUID(), uid: object.GetUID()}, nil
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(gvk)
	switch err := c.live.Get(ctx, client.ObjectKeyFromObject(object), now); {
	case apierrors.IsForbidden(err):
		return mark{version: "0"}, nil // any state; the answer to the delete has the uid
	case err != nil:
		return mark{}, err
	}
	return mark{version: tarn.Version(now.ResourceVersion), gone: now.UID, uid: now.UID, labels: now.Labels, known: true}, nil
}

// hides says that some copy would not show an object with these labels. Whether
// they are still its labels only the server knows.
func (c *ctrlCache) hides(gvk schema.GroupVersionKind, object client.Object) bool {
	return slices.ContainsFunc(c.all(), func(p *scopedInformer) bool {
		s := p.config.LabelSelector
		return p.gvk == gvk && s != nil && !s.Matches(labelsOf(object))
	})
}

// delete is the request itself: the client's own Delete throws the answer away.
func (w *marking) delete(ctx context.Context, mapping *meta.RESTMapping, key client.ObjectKey, chosen *client.DeleteOptions) (*unstructured.Unstructured, error) {
	gvk := mapping.GroupVersionKind
	requests, err := w.deleter(gvk)
	if err != nil {
		return nil, fmt.Errorf("%v %v cannot be deleted: %w", gvk, key, err)
	}
	answer := &unstructured.Unstructured{}
	return answer, requests.Delete().NamespaceIfScoped(key.Namespace, key.Namespace != "").
		Resource(mapping.Resource.Resource).Name(key.Name).Body(chosen.AsDeleteOptions()).Do(ctx).Into(answer)
}

// deleter is what deletes objects of a kind.
func (w *marking) deleter(gvk schema.GroupVersionKind) (rest.Interface, error) {
	if known, ok := w.deleters.Load(gvk); ok {
		return known.(rest.Interface), nil
	}
	made, err := apiutil.RESTClientForGVK(gvk, true, true, w.cfg, serializer.NewCodecFactory(w.options.Scheme), w.options.HTTPClient)
	if err != nil {
		return nil, err
	}
	first, _ := w.deleters.LoadOrStore(gvk, made)
	return first.(rest.Interface), nil
}

// afterDelete is what a copy must have seen after this answer to a delete. A Status
// says that the object is gone; an object may be its last state, or still exist.
func afterDelete(last mark, answer *unstructured.Unstructured) mark {
	if answer.GetResourceVersion() == "" || answer.GetKind() == "Status" {
		if details, ok, _ := unstructured.NestedString(answer.Object, "details", "uid"); ok && details != "" {
			last.gone, last.uid = types.UID(details), types.UID(details)
		}
		return last
	}
	m := mark{version: tarn.Version(answer.GetResourceVersion()), uid: answer.GetUID(), labels: answer.GetLabels(), known: true}
	if answer.GetDeletionTimestamp() == nil || ended(answer) {
		m.gone = answer.GetUID()
	}
	return m.follows(last)
}

// afterWrite is what a copy must have seen after this answer to a write. A write that removes
// the last finalizer of an object that is being deleted completes the delete; the answer is
// the object, with the version that it had before.
func afterWrite(answer metav1.Object) mark {
	m := mark{version: tarn.Version(answer.GetResourceVersion()), uid: answer.GetUID()}
	if ended(answer) {
		m.gone = answer.GetUID()
	}
	return m
}

// ended says that an object was being deleted, and that neither a finalizer nor a grace
// period kept it any more.
func ended(o metav1.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && grace != nil && *grace == 0
}

// DeleteAllOf deletes the objects that the options select. Its answer does not name
// the objects, so their metadata is listed before and after. The second list has no
// selectors, because an object that they no longer select was not deleted.
func (c *ownClient) DeleteAllOf(ctx context.Context, object client.Object, opts ...client.DeleteAllOfOption) error {
	chosen := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	if c.unmarked(chosen.DeleteOptions.DisableReadYourWritesConsistency, chosen.DryRun) {
		return c.Client.DeleteAllOf(ctx, object, opts...)
	}
	gvk, err := apiutil.GVKForObject(object, c.options.Scheme)
	if err != nil {
		return err
	}
	before, err := c.listed(ctx, gvk, &chosen.ListOptions)
	if apierrors.IsForbidden(err) {
		// Who may not list the objects has no copy of them either, whose reads could wait.
		return c.Client.DeleteAllOf(ctx, object, opts...)
	}
	if err != nil {
		return err
	}
	var pending []*pendingWrite
	for key := range before {
		pending = append(pending, c.cache.writes.begin(gvk, key))
	}
	marks := map[client.ObjectKey]mark{}
	defer func() { c.cache.finishWrite(gvk, marks, pending...) }()
	if err := c.Client.DeleteAllOf(ctx, object, opts...); err != nil {
		return err
	}
	now, err := c.listed(ctx, gvk, &client.ListOptions{Namespace: chosen.Namespace})
	if err != nil {
		return err
	}
	for key, was := range before {
		if is := now[key]; is.gone == was.gone {
			was, was.gone = is, ""
		}
		marks[key] = was
	}
	return nil
}

// listed is the state of what the options choose, each object as if it were gone.
func (c *ownClient) listed(ctx context.Context, gvk schema.GroupVersionKind, chosen *client.ListOptions) (map[client.ObjectKey]mark, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind{gvk: gvk}.listKind())
	if err := c.live.List(ctx, list, chosen); err != nil {
		return nil, err
	}
	found := map[client.ObjectKey]mark{}
	for i := range list.Items {
		o := &list.Items[i]
		found[client.ObjectKeyFromObject(o)] = mark{version: tarn.Version(o.ResourceVersion), gone: o.UID, uid: o.UID, labels: o.Labels, known: true}
	}
	return found, nil
}
