package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/reasons"
	"github.com/tarnproject/tarn/internal/usercall"
)

// source is a ListerWatcher as the engine sees it. It speaks the protocol, that
// is ListOptions, list types and watch events, and holds no policy.
type source struct {
	lw ListerWatcherWithContext
	// given is the argument that lw was made from.
	given ListerWatcher
	// description is what errors call the collection.
	description string
	expected    expectedType
	keyOf       KeyFunc
	// nameless lets objects without a name pass: for a store that is not ours and
	// has a key function of its own to judge them, and for a fake clientset, which
	// makes no names from generateName.
	nameless bool
	meter    *reflectorMeter
	// fake says that the last watch was one that tests make, decoded that it came from a
	// server.
	fake, decoded bool
	// fresh says that nobody else has the objects of the last result. It belongs to
	// the reading goroutine, which processes them before the next read.
	fresh bool
}

var _ tarn.Source[any] = (*source)(nil)

// newSource makes a source of what NewReflector and the informers are given.
func newSource(lw ListerWatcher, example any, description string) *source {
	return &source{
		lw:          ToListerWatcherWithContext(lw),
		given:       lw,
		description: description,
		expected:    expectedTypeOf(example),
		keyOf:       MetaNamespaceKeyFunc,
		nameless:    isFake(lw),
	}
}

// unusable says what is missing in a lister-watcher. It is looked for each time
// that it would be asked: the constructors cannot return an error, and the
// functions of a ListWatch may be set later.
func (s *source) unusable() error {
	functions, own := s.given.(*ListWatch)
	switch {
	case isNil(s.given):
		return fmt.Errorf("%s: the ListerWatcher is nil: there is nothing to list and watch", s.description)
	case own && functions.ListFunc == nil && functions.ListWithContextFunc == nil:
		return fmt.Errorf("%s: the ListWatch has no function to list: set ListWithContextFunc", s.description)
	case own && functions.WatchFunc == nil && functions.WatchFuncWithContext == nil:
		return fmt.Errorf("%s: the ListWatch has no function to watch: set WatchFuncWithContext", s.description)
	}
	return nil
}

// List reads one page.
func (s *source) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[any], error) {
	if err := s.unusable(); err != nil {
		return tarn.Page[any]{}, err
	}
	options := metav1.ListOptions{ResourceVersion: string(q.AtLeast), Limit: q.Limit, Continue: q.Continue, FieldSelector: selecting(q.Key)}
	if q.Continue != "" {
		// The token implies the version.
		options.ResourceVersion = ""
	}
	done := s.meter.list()
	list, err := usercall.Do(ctx, "lister-watcher", func() (runtime.Object, error) {
		return s.lw.ListWithContext(ctx, options)
	}, nil)
	if err != nil {
		return tarn.Page[any]{}, classify(s.advise("list", err))
	}
	s.fresh = false // the maker of the list may keep it
	page, err := s.page(list)
	done(len(page.Items))
	return page, err
}

// selecting is the field selector for one object; empty for all.
func selecting(key tarn.Key) string {
	namespace, name, err := SplitMetaNamespaceKey(string(key))
	if err != nil || name == "" {
		return ""
	}
	selector := fields.Set{metav1.ObjectNameField: name}
	if namespace != "" {
		selector["metadata.namespace"] = namespace
	}
	return selector.AsSelector().String()
}

// page takes a list apart.
func (s *source) page(list runtime.Object) (page tarn.Page[any], err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %s: %T cannot be taken apart: %v", tarn.ErrNoList, s.description, list, v)
		}
	}()
	if isNil(list) {
		return page, fmt.Errorf("%w: %s: it is nil", tarn.ErrNoList, s.description)
	}
	if gvk := list.GetObjectKind().GroupVersionKind(); isTable(gvk) {
		return page, fmt.Errorf("%w: %s: unsupported list gvk: %v; ask for objects, not for a table", tarn.ErrNoList, s.description, gvk)
	}
	head, err := meta.ListAccessor(list)
	if err != nil {
		return page, fmt.Errorf("%w: %s: %T: %w", tarn.ErrNoList, s.description, list, err)
	}
	items, err := meta.ExtractListWithAlloc(list)
	if err != nil {
		return page, fmt.Errorf("%w: %s: %T: %w", tarn.ErrNoList, s.description, list, err)
	}
	page.Version = tarn.Version(head.GetResourceVersion())
	page.Continue = head.GetContinue()
	page.Items = make([]any, 0, len(items))
	for _, item := range items {
		if err := s.expected.foreign(item); err != nil {
			page.Bad = append(page.Bad, s.bad(item, err))
		} else {
			page.Items = append(page.Items, item)
		}
	}
	return page, nil
}

// Watch opens a stream.
func (s *source) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[any], error) {
	if err := s.unusable(); err != nil {
		return nil, err
	}
	options := metav1.ListOptions{
		ResourceVersion:     string(q.From),
		AllowWatchBookmarks: true,
		TimeoutSeconds:      ptr.To(int64(q.Timeout.Seconds())),
	}
	if q.Initial {
		options.SendInitialEvents = ptr.To(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	w, err := usercall.Do(ctx, "lister-watcher", func() (watch.Interface, error) {
		return s.lw.WatchWithContext(ctx, options)
	}, func(w watch.Interface) {
		if !isNil(w) {
			w.Stop()
		}
	})
	if err != nil {
		err = s.advise("watch", err)
		if q.Initial && reasons.RefusesWatchList(err) {
			return nil, tarn.Because(tarn.ReasonNoWatchList, 0, err)
		}
		return nil, classify(err)
	}
	if isNil(w) {
		return nil, fmt.Errorf("%s: the watch is nil: a Watch function must return a watch or an error", s.description)
	}
	_, s.decoded = w.(*watch.StreamWatcher)
	switch w.(type) {
	case *watch.FakeWatcher, *watch.RaceFreeFakeWatcher:
		s.fake = true
	default:
		s.fake = false
	}
	return &stream{source: s, w: w, decoded: s.decoded, done: s.meter.watch()}, nil
}

// Fake reports whether the objects come from a test, with versions that say nothing about
// time. A ListWatch over a fake watch need not declare itself as a fake clientset does, and
// a program may declare the same of a server that cannot stream its initial events.
func (s *source) Fake() (fake, known bool) { return s.fake, s.fake || s.decoded }

// Describe reads an object's identity. Type is not checked here but where
// objects come in, because a transform may make anything of them.
func (s *source) Describe(object any) (tarn.Meta, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return tarn.Meta{}, fmt.Errorf("%T has no metadata: %w", object, err)
	}
	described := tarn.Meta{Version: tarn.Version(m.GetResourceVersion()), UID: string(m.GetUID())}
	if m.GetName() == "" && !s.nameless {
		return described, errors.New("the object has no name")
	}
	key, err := s.keyOf(object)
	if err != nil {
		return described, KeyError{Obj: object, Err: err}
	}
	described.Key = tarn.Key(key)
	return described, nil
}

// bad describes a bad object, by name if it has one.
func (s *source) bad(object runtime.Object, err error) tarn.BadObject {
	b := tarn.BadObject{Err: err}
	if !isNil(object) {
		if m, describeErr := s.Describe(object); describeErr == nil {
			b.Key, b.Version = m.Key, m.Version
		}
	}
	return b
}

// isNil also sees a nil pointer in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
