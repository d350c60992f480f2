package cache

import (
	upstream "k8s.io/client-go/tools/cache"
)

// Sources: what a reflector lists and watches.
type (
	Getter                   = upstream.Getter
	ListFunc                 = upstream.ListFunc
	ListWatch                = upstream.ListWatch
	ListWithContextFunc      = upstream.ListWithContextFunc
	Lister                   = upstream.Lister
	ListerWatcher            = upstream.ListerWatcher
	ListerWatcherWithContext = upstream.ListerWatcherWithContext
	ListerWithContext        = upstream.ListerWithContext
	WatchFunc                = upstream.WatchFunc
	WatchFuncWithContext     = upstream.WatchFuncWithContext
	Watcher                  = upstream.Watcher
	WatcherWithContext       = upstream.WatcherWithContext
)

// Reflectors. Reflector itself is client-go's struct, because error handlers take
// it by that type; its constructors say what this package makes of it.
type (
	Reflector                    = upstream.Reflector
	ReflectorBookmarkStore       = upstream.ReflectorBookmarkStore
	ReflectorOptions             = upstream.ReflectorOptions
	ReflectorStore               = upstream.ReflectorStore
	ResourceVersionComparator    = upstream.ResourceVersionComparator
	ResourceVersionUpdater       = upstream.ResourceVersionUpdater
	RetryWithDeadline            = upstream.RetryWithDeadline
	ShouldResyncFunc             = upstream.ShouldResyncFunc
	VeryShortWatchError          = upstream.VeryShortWatchError
	WatchErrorHandler            = upstream.WatchErrorHandler
	WatchErrorHandlerWithContext = upstream.WatchErrorHandlerWithContext
)

// Queues and what goes through them. [DeltaFIFO] and [RealFIFO] are this
// package's own.
type (
	BookmarkInfo     = upstream.BookmarkInfo
	Delta            = upstream.Delta
	DeltaFIFOOptions = upstream.DeltaFIFOOptions
	DeltaType        = upstream.DeltaType
	Deltas           = upstream.Deltas
	FIFO             = upstream.FIFO
	Heap             = upstream.Heap
	LessFunc         = upstream.LessFunc
	PopProcessFunc   = upstream.PopProcessFunc
	ProcessBatchFunc = upstream.ProcessBatchFunc
	ProcessFunc      = upstream.ProcessFunc
	Queue            = upstream.Queue
	QueueWithBatch   = upstream.QueueWithBatch
	RealFIFOOptions  = upstream.RealFIFOOptions
	ReplacedAllInfo  = upstream.ReplacedAllInfo
	SyncAllInfo      = upstream.SyncAllInfo
)

// What a [Delta] says.
const (
	Added       = upstream.Added
	Updated     = upstream.Updated
	Deleted     = upstream.Deleted
	Replaced    = upstream.Replaced
	ReplacedAll = upstream.ReplacedAll
	Sync        = upstream.Sync
	SyncAll     = upstream.SyncAll
	Bookmark    = upstream.Bookmark
)

var (
	// ErrFIFOClosed ends a Pop from a queue that is closed and empty.
	ErrFIFOClosed = upstream.ErrFIFOClosed
	// ErrZeroLengthDeltasObject says that a [Deltas] holds no delta to take a
	// key from.
	ErrZeroLengthDeltasObject = upstream.ErrZeroLengthDeltasObject
)

// Controllers and informers.
type (
	Config                     = upstream.Config
	Controller                 = upstream.Controller
	DoneChecker                = upstream.DoneChecker
	HandlerOptions             = upstream.HandlerOptions
	InformerName               = upstream.InformerName
	InformerNameAndResource    = upstream.InformerNameAndResource
	InformerOptions            = upstream.InformerOptions
	InformerSynced             = upstream.InformerSynced
	SharedIndexInformer        = upstream.SharedIndexInformer
	SharedIndexInformerOptions = upstream.SharedIndexInformerOptions
	SharedInformer             = upstream.SharedInformer
	SyncResult                 = upstream.SyncResult
)

// Mutations: objects that their user changed and the cache has not seen yet, and
// objects that nobody should have changed.
type (
	MutationCache    = upstream.MutationCache
	MutationDetector = upstream.MutationDetector
)

// Metrics.
type (
	CounterMetric           = upstream.CounterMetric
	GaugeMetric             = upstream.GaugeMetric
	HistogramMetric         = upstream.HistogramMetric
	InformerMetricsProvider = upstream.InformerMetricsProvider
	MetricsProvider         = upstream.MetricsProvider
	SummaryMetric           = upstream.SummaryMetric
)
