package cache

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientfeatures "k8s.io/client-go/features"
	upstream "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/tarnproject/tarn"
)

// NewReflector returns a reflector from lw into store, named after its caller.
// See [NewReflectorWithOptions].
func NewReflector(lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{ResyncPeriod: resyncPeriod})
}

// NewNamedReflector returns a reflector from lw into store with a name. See
// [NewReflectorWithOptions].
func NewNamedReflector(name string, lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod})
}

// NewNamespaceKeyedIndexerAndReflector returns an indexer that knows namespaces
// and a reflector that fills it.
func NewNamespaceKeyedIndexerAndReflector(lw ListerWatcher, expectedType any, resyncPeriod time.Duration) (Indexer, *Reflector) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// NewReflectorWithOptions returns a reflector that keeps store equal to what lw
// lists and watches.
//
// Only objects of expectedType are put into the store, unless it is nil. The
// reflector has client-go's type and our implementation: see [facade].
func NewReflectorWithOptions(lw ListerWatcher, expectedType any, store ReflectorStore, options ReflectorOptions) *Reflector {
	if options.TypeDescription == "" {
		options.TypeDescription = describeType(expectedType)
	}
	if options.Name == "" {
		options.Name = callerName()
	}
	return newShell(lw, expectedType, store, options)
}

// usesWatchList says whether a collection may be streamed: the feature is on and
// the lister-watcher does not say that it cannot.
func usesWatchList(lw ListerWatcher) bool {
	return clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient) && !isFake(lw)
}

// isFake says whether a lister-watcher declares itself to be less than a real
// server, as those of fake clientsets do.
func isFake(lw ListerWatcher) bool { return watchlist.DoesClientNotSupportWatchListSemantics(lw) }

// engineOptions is what all reflectors and informers of this package have in
// common.
func engineOptions(name string, clk clock.Clock, logger klog.Logger) tarn.Options[any] {
	opts := tarn.Options[any]{
		Name:   name,
		Logger: slog.New(logr.ToSlogHandler(logger)),
		OnBad:  func(ctx context.Context, bad tarn.BadObject) { reportBad(ctx, name, bad) },
	}
	opts.OnDamage = func(ctx context.Context, damage tarn.Damage) {
		utilruntime.HandleErrorWithContext(ctx, tarn.ErrStrayWrite, "An object of the cache was written to; it is read again",
			"reflector", name, "key", damage.Key, "field", damage.Field)
	}
	if clk != nil {
		opts.Clock = engineClock{clk}
	}
	return opts
}

// engineClock is a clock of k8s.io/utils as the engine sees it.
type engineClock struct{ clock.Clock }

func (c engineClock) NewTimer(d time.Duration) tarn.Timer { return c.Clock.NewTimer(d) }

// handlerError is an engine's error as the error handlers that users write have
// always known it.
func handlerError(name string, err error) error {
	switch {
	case errors.Is(err, tarn.ErrShortWatch):
		return &upstream.VeryShortWatchError{Name: name}
	case tarn.ReasonOf(err) == tarn.ReasonExpired && !isExpired(err):
		return expiredError{rawWatchError(err)}
	default:
		return rawWatchError(err)
	}
}

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// expiredError translates the error of a source that does not use API errors.
type expiredError struct{ error }

func (e expiredError) Unwrap() []error {
	return []error{e.error, apierrors.NewResourceExpired(e.Error())}
}

// DefaultWatchErrorHandler logs why a connection was dropped, at a level that fits the cause.
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	if isExpired(err) || tarn.ReasonOf(err) == tarn.ReasonExpired {
		klog.FromContext(ctx).V(4).Info("The watched version has expired; listing again", "reflector", r.Name(), "type", r.TypeDescription(), "err", err)
		return
	}
	utilruntime.HandleErrorWithContext(ctx, err, "Failed to list or watch; the copy ages until it works again", "reflector", r.Name(), "type", r.TypeDescription())
}
