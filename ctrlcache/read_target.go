package ctrlcache

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readTarget is an informer as it is read in one form: its own, or the metadata of a fuller
// one.
type readTarget struct {
	*scopedInformer
	as form
	// shared says that what is read is the cached object itself.
	shared bool
}

// readTarget returns what a place is to be read from, synced.
func (c *ctrlCache) readTarget(ctx context.Context, at informerKey, e *extent) (readTarget, error) {
	p, started := c.existing(at)
	if p == nil && at.form == metadataOnly {
		p, started = c.fuller(at, e)
	}
	fresh := false
	if p == nil {
		if c.opts.ReaderFailOnMissingInformer {
			return readTarget{}, &cache.ErrResourceNotCached{GVK: at.gvk}
		}
		var err error
		if p, started, fresh, err = c.obtain(at, e); err != nil {
			return readTarget{}, err
		}
	}
	if !started {
		return readTarget{}, &cache.ErrCacheNotStarted{}
	}
	if err := p.awaitSync(ctx, fresh); err != nil {
		return readTarget{}, err
	}
	return readTarget{p, at.form, ptr.Deref(e.configs[at.namespace].UnsafeDisableDeepCopy, false)}, nil
}

// fuller returns an informer of whole objects for a read of metadata, if its
// metadata equals that of a metadata-only copy.
func (c *ctrlCache) fuller(at informerKey, e *extent) (*scopedInformer, bool) {
	for _, f := range []form{typed, unstructuredForm} {
		p, started := c.existing(informerKey{kind{at.gvk, f}, at.namespace})
		if p != nil && sameMetadata(p.config, e.configs[at.namespace]) {
			return p, started
		}
	}
	return nil, false
}

// sameMetadata says that two settings choose the same objects and leave the same
// metadata. What a transform of somebody's own does to a whole object and to its
// metadata may differ, so there must be none; removing the managed fields is
// known to be the same.
func sameMetadata(a, b cache.Config) bool {
	return selectorText(a.LabelSelector) == selectorText(b.LabelSelector) &&
		selectorText(a.FieldSelector) == selectorText(b.FieldSelector) &&
		(a.Transform == nil && b.Transform == nil || strips(a.Transform) && strips(b.Transform))
}

func selectorText(s fmt.Stringer) string {
	if s == nil {
		return ""
	}
	return s.String()
}

var stripSource = sourceOf(cache.TransformStripManagedFields())

// strips recognises controller-runtime's transform that removes managed fields. It
// has no state, so its source line identifies it. Its code address does not: the
// compiler makes a copy for each caller.
func strips(t toolscache.TransformFunc) bool {
	// A build without line numbers knows nothing, and must not guess.
	known := strings.HasSuffix(stripSource.file, "pkg/cache/cache.go") && stripSource.line > 1
	return t != nil && known && sourceOf(t) == stripSource
}

type sourceLine struct {
	file string
	line int
}

func sourceOf(t toolscache.TransformFunc) (at sourceLine) {
	code := reflect.ValueOf(t).Pointer()
	at.file, at.line = runtime.FuncForPC(code).FileLine(code)
	return at
}

// output returns a stored object as it is given to a reader: a copy that names its
// kind, or if shared the stored object itself, untouched.
func (v readTarget) output(stored any, shared bool) (kruntime.Object, error) {
	object, ok := stored.(client.Object)
	if !ok {
		return nil, fmt.Errorf("the cache holds a %T for %v, which is not an object", stored, v.gvk)
	}
	if v.as == metadataOnly && v.form != metadataOnly {
		return v.metadata(object, shared)
	}
	if shared {
		return object, nil
	}
	handed := object.DeepCopyObject()
	handed.GetObjectKind().SetGroupVersionKind(v.gvk)
	return handed, nil
}

// metadata is what the server would have given as the metadata of a whole object.
func (v readTarget) metadata(object client.Object, shared bool) (kruntime.Object, error) {
	out := &metav1.PartialObjectMetadata{}
	switch accessor, ok := object.(metav1.ObjectMetaAccessor); {
	case ok:
		whole, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta)
		if !ok {
			return nil, fmt.Errorf("the metadata of a %T for %v cannot be read", object, v.gvk)
		}
		if shared {
			out.ObjectMeta = *whole
		} else {
			whole.DeepCopyInto(&out.ObjectMeta)
		}
	default:
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("the metadata of a %T for %v cannot be read", object, v.gvk)
		}
		raw, _ := u.Object["metadata"].(map[string]any)
		if err := kruntime.DefaultUnstructuredConverter.FromUnstructured(raw, &out.ObjectMeta); err != nil {
			return nil, fmt.Errorf("the metadata of %v %s cannot be read: %w", v.gvk, client.ObjectKeyFromObject(object), err)
		}
	}
	out.SetGroupVersionKind(v.gvk)
	return out, nil
}

func labelsOf(object client.Object) labels.Set { return object.GetLabels() }
