package tarn

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/tarnproject/tarn/internal/guard"
)

// startGuard starts guard mode for a copy if the options or the environment ask for it;
// see [Options.Guard]. It returns nil if they do not.
func startGuard[T any](ctx context.Context, o Options[T]) (session *guard.Session, stop func()) {
	if !o.Guard && !guard.FromEnvironment() {
		return nil, func() {}
	}
	session, err := guard.NewSession(o.Name)
	if err != nil {
		o.OnError(ctx, fmt.Errorf("%s: the copy runs without guard mode: %w", o.Name, err))
		return nil, func() {}
	}
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { session.Run(end) })
	return session, func() {
		close(end)
		running.Wait()
	}
}

// guardUntil starts guard mode, until ctx ends, for a reflector whose passes are made one
// by one. A store that cannot be read is not ours: the objects that it gets belong to it.
//
// Only the end of ctx shows that the last pass is over: client-go's Reflector, which makes
// the passes, ends without a call to its source.
func (r *Reflector[T]) guardUntil(ctx context.Context) {
	running := r.guard != nil && (r.guarded == nil || r.guarded.Err() == nil)
	if running || r.reader == nil {
		return
	}
	session, stop := startGuard(ctx, r.opts)
	if session != nil {
		r.guard, r.guarded = session, ctx
		context.AfterFunc(ctx, stop)
	}
}

// freeze returns an object that cannot be written, in guard mode.
func freeze[T any](session *guard.Session, key Key, object T) (T, error) {
	if session == nil {
		return object, nil
	}
	frozen, err := session.Freeze(string(key), object)
	if err != nil {
		return object, err
	}
	return frozen.(T), nil
}

// faultsPanic makes a write to a frozen object a panic in this goroutine, so that a
// handler's panic names the object. It returns a function that undoes this.
func faultsPanic() (undo func()) {
	if !guard.Active() {
		return func() {}
	}
	before := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(before) }
}

// explainFault is the value of a panic, or what it means if it is a write to a frozen
// object.
func explainFault(recovered any) any {
	if message, ok := guard.Fault(recovered); ok {
		return message
	}
	return recovered
}
