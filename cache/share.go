package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/guard"
	"github.com/tarnproject/tarn/kube/wire"
)

// ShareStructure makes an informer of this package hold equal parts of its objects
// once, or each object by itself. It must be called before the informer starts;
// unless it is called, parts are shared.
//
// Pods of one ReplicaSet, nodes of one pool, custom resources made from one template
// are mostly alike: sharing takes a quarter of the memory, and less work for the
// garbage collector, for some microseconds when an object arrives. What is stored has
// the same content as what the source gave, built after the transform: in a copy, or in
// its place if it was decoded for this informer. The object itself, its metadata except
// for the managed fields, and numbers that it points to are its own; other parts may
// belong to objects of the same template too, of this informer or another one. While
// mutations are detected, nothing is shared.
//
// Objects in a cache are read-only whether they share or not. What a program writes to
// a shared part by mistake shows in the objects that have this very part. It is found
// when the part is used again, and within ten minutes if it is not; then it is reported
// to the error handlers of package utilruntime, with the object and the field, and
// counted in the replica's Health, and the objects are read again. [DetectMutations]
// finds out who does it.
func ShareStructure(informer SharedInformer, on bool) error {
	if isNil(informer) {
		return errors.New("a nil informer has nothing to share")
	}
	own, ok := informer.GetStore().(*indexer)
	if !ok || own.informer == nil {
		return fmt.Errorf("%T cannot share: it is not a shared informer of this package", informer)
	}
	return own.informer.configure(func(*tarn.Options[any]) { own.informer.unshared = !on })
}

// SharingSource is a source whose objects can come with their equal parts shared
// already, as those of package kube do: then the informer does not do it again.
type SharingSource interface {
	tarn.Source[any]
	// ShareParts says, before the first request, whether objects may have parts in
	// common. They may not if each is to be changed by a transform.
	ShareParts(on bool)
}

// making is what happens to an object before it is stored: it is transformed, then
// its parts are shared.
//
// With the mutation detector on nothing is shared: otherwise a change to one
// object would be reported of all that have the same part.
func (s *informer) making() TransformFunc {
	_, undetected := s.detector.(noMutationDetector)
	transform, share := s.transform, undetected && !s.unshared
	s.keep.traits = ObjectTraits{Transformed: transform != nil, Transform: transform, Shared: share}
	if source, ok := s.supplied.(SharingSource); ok {
		source.ShareParts(share && transform == nil)
		share = share && transform != nil
	} else if s.supplied != nil && transform != nil {
		transform = onCopy(transform)
	}
	s.sharing = share
	if !share {
		return transform
	}
	return sharing(transform, s.store, ourSharer(), s.source)
}

// onCopy lets a transform work on a copy, for objects of a source that may still
// need them, or have parts in common.
func onCopy(transform TransformFunc) TransformFunc {
	return func(object any) (any, error) {
		if original, ok := object.(runtime.Object); ok {
			object = original.DeepCopyObject()
		}
		return transform(object)
	}
}

// sharing adds to a transform that the parts of what it makes are shared: with the
// state that store has of the same object, and with others. Objects that from has
// decoded for us alone are shared where they are, unless there is a transform, which
// may return anything.
//
// In guard mode nothing is shared: each object is copied into memory of its own next. A
// program may also send what it read from such memory to another informer, and no pool may
// hold that: Go ends a process that makes a weak pointer to it.
func sharing(transform TransformFunc, store *indexer, sharer *wire.Sharer, from *source) TransformFunc {
	if guard.FromEnvironment() {
		return transform
	}
	return func(object any) (any, error) {
		if transform != nil {
			var err error
			if object, err = transform(object); err != nil {
				return object, err
			}
		} else if from != nil && from.fresh {
			return sharer.ShareOwn(object, store.held(object)), nil
		}
		return sharer.ShareLike(object, store.held(object)), nil
	}
}

// held is the state that the store has of an object, or nil.
func (x *indexer) held(object any) any {
	if x.memory().Len() == 0 {
		return nil
	}
	key, err := x.keyOf(object)
	if err != nil {
		return nil
	}
	held, _ := x.memory().Get(tarn.Key(key))
	return held
}

// ourSharer is that of all informers of the process: what it needs and learns is
// by type, and need not be there once for each of fifty informers.
var ourSharer = sync.OnceValue(func() *wire.Sharer { return wire.NewSharer(wire.Shared(), wire.Options{}) })

// verifiedSource is the source of an informer. Beside the source's own maintenance, it
// watches over the parts that the informer shares by itself.
type verifiedSource struct {
	tarn.Source[any]
	informer *informer
}

// Unwrap lets the engine find what the source can do beyond the contract.
func (s verifiedSource) Unwrap() tarn.Source[any] { return s.Source }

func (s verifiedSource) StreamList(ctx context.Context, q tarn.ListQuery, take func([]any)) (tarn.Page[any], error) {
	return tarn.StreamList(ctx, s.Source, q, take)
}

func (s verifiedSource) Maintain(ctx context.Context, held tarn.Copy[any]) {
	var running sync.WaitGroup
	defer running.Wait()
	if m, ok := s.informer.supplied.(tarn.Maintainer[any]); ok {
		running.Go(func() { m.Maintain(ctx, held) })
	}
	if s.informer.sharing {
		running.Go(func() { wire.Verifier[any]{Pool: wire.Shared()}.Run(ctx, held) })
	}
}
