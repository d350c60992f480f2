package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tarnproject/tarn"
)

// reportTo gives what fails to an error handler: failures to list or watch, and objects
// that could not be taken. The default handler gets everything that is known, a user's
// handler gets what client-go would have given it.
//
// Bad objects go to the error handlers of the process too. client-go says nothing about
// an object that cannot be decoded or indexed, so a handler has never been expected to
// log it.
func reportTo(o *tarn.Options[any], reflector *shownReflector, handler WatchErrorHandlerWithContext) {
	name := o.Name
	if handler == nil {
		o.OnError = func(ctx context.Context, err error) { DefaultWatchErrorHandler(ctx, reflector.Reflector, err) }
		o.OnBad = func(ctx context.Context, bad tarn.BadObject) { reportBad(ctx, name, bad) }
		return
	}
	call := func(ctx context.Context, err error) {
		defer utilruntime.HandleCrashWithContext(ctx)
		handler(ctx, reflector.upToDate(), err)
	}
	o.OnError = func(ctx context.Context, err error) { call(ctx, handlerError(reflector.Name(), err)) }
	o.OnBad = func(ctx context.Context, bad tarn.BadObject) {
		reportBad(ctx, name, bad)
		call(ctx, &badObjectError{bad})
	}
}

// reportBad gives a bad object to the error handlers of the process.
func reportBad(ctx context.Context, reflector string, bad tarn.BadObject) {
	utilruntime.HandleErrorWithContext(ctx, bad.Err, "An object could not be taken; its last good state stays", "reflector", reflector, "key", bad.Key)
}

// badObjectError is a bad object as an error handler gets it. The key can be read from
// the [tarn.ObjectErrors] that it wraps.
type badObjectError struct{ bad tarn.BadObject }

func (e *badObjectError) Error() string {
	if e.bad.Key == "" {
		return fmt.Sprintf("an object without a readable name could not be taken: %v", e.bad.Err)
	}
	return fmt.Sprintf("object %q at version %q could not be taken, its last good state stays: %v", e.bad.Key, e.bad.Version, e.bad.Err)
}

func (e *badObjectError) Unwrap() []error { return []error{tarn.ObjectErrors{e.bad}, e.bad.Err} }

// shownReflector is the reflector that error handlers are given. It lists and watches
// nothing: they ask it for its name, what it reflects and the version of the copy.
type shownReflector struct {
	*Reflector
	// version is that of the copy.
	version func() string

	mu    sync.Mutex
	shown string
}

func newShownReflector(name, description string, version func() string) *shownReflector {
	s := &shownReflector{version: version}
	s.Reflector = upstream.NewReflectorWithOptions(s, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{
		Name: name, TypeDescription: description, Logger: &klog.Logger{}, // its lists are not worth a line
	})
	return s
}

// upToDate returns the reflector with the present version. client-go lets nobody set
// that, so the reflector takes it from an empty list.
func (s *shownReflector) upToDate() *Reflector {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.version(); v != s.shown {
		s.shown = v
		_ = s.ListAndWatchWithContext(klog.NewContext(context.Background(), klog.Logger{})) // returns errNoWatch
	}
	return s.Reflector
}

// errNoWatch ends the pass that takes the version.
var errNoWatch = errors.New("there is nothing to watch")

func (s *shownReflector) List(metav1.ListOptions) (runtime.Object, error) {
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: s.shown}}, nil
}

func (*shownReflector) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, errNoWatch }

// IsWatchListSemanticsUnSupported has client-go ask for a list.
func (*shownReflector) IsWatchListSemanticsUnSupported() bool { return true }
