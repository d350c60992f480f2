package cache

import (
	"context"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tarnproject/tarn"
)

// reportTo gives what fails to an error handler: failures to list or watch, and objects
// that could not be taken. The default handler gets everything that is known, a user's
// handler gets what client-go would have given it.
//
// Bad objects go to the error handlers of the process too. client-go says nothing about
// an object that cannot be decoded or indexed, so a handler has never been expected to
// log it.
func reportTo(o *tarn.Options[any], reflector *Reflector, handler WatchErrorHandlerWithContext) {
	name := o.Name
	if handler == nil {
		o.OnError = func(ctx context.Context, err error) { DefaultWatchErrorHandler(ctx, reflector, err) }
		o.OnBad = func(ctx context.Context, bad tarn.BadObject) { reportBad(ctx, name, bad) }
		return
	}
	call := func(ctx context.Context, err error) {
		defer utilruntime.HandleCrashWithContext(ctx)
		handler(ctx, reflector, err)
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
