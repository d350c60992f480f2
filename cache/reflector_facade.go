package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
)

// facade lets our engine run behind client-go's Reflector type.
//
// Error handlers take a *Reflector by client-go's own interfaces, so the type
// must stay client-go's, and with it come its methods: Run and ListAndWatch list
// a lister-watcher, or stream it, replace a store and watch. The facade is that
// lister-watcher and that store. What client-go asks of it are the steps of an
// engine's pass over the user's lister-watcher and store:
//
//	list, Replace   the engine fetches the whole state (Begin), and gives it to
//	                the user's store (Commit)
//	watch list      the same in one step
//	watch           the engine follows (Follow); the facade's watch carries only
//	                the versions reached, for LastSyncResourceVersion
//
// What remains with client-go is to call ListAndWatch again after a pause, and the
// pause is ours by ReflectorOptions.Backoff. Paging, streaming, retries, probes,
// what to do about each failure: the engine decides all of it, and client-go's code
// for it is never reached, because its list is one empty page and its watch only
// ever carries bookmarks.
//
// Two ways to begin because client-go has two: which one it takes was decided by
// a feature gate when it was made. The engine streams or lists as it sees fit in
// both.
//
// Why not a copy of the struct filled by unsafe: it would break with any change
// of a private field. Why not our own type with the same methods: handlers of
// type func(*Reflector, error) that users have written would no longer compile.
type facade struct {
	engine    *tarn.Reflector[any]
	reflector *Reflector
	clock     clock.Clock

	mu sync.Mutex
	// pass has been fetched and not yet followed; ctx is its.
	pass *tarn.Pass[any]
	ctx  context.Context
	// forget ends the wait for the end of ctx, which would hold the pass.
	forget func() bool
	// bookmarks is the watch of the pass that is followed.
	bookmarks *bookmarkWatch
	// failure is why the pass could not begin or continue, for the next call.
	failure error
	// repeated says that failure has been returned once already.
	repeated bool
	// busyUntil is until when the server wants no requests. client-go's loop knows
	// only its own backoff, so the next pass waits for the rest.
	busyUntil time.Time
}

func newShell(lw ListerWatcher, example any, store ReflectorStore, options ReflectorOptions) *Reflector {
	clk := options.Clock
	if clk == nil {
		clk = clock.RealClock{}
	}
	s := &facade{clock: clk}
	if options.Backoff == nil {
		options.Backoff = defaultBackoff()
	}
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	s.reflector = upstream.NewReflectorWithOptions(facadeSource{s}, nil, facadeStore{s}, ReflectorOptions{
		Logger:          options.Logger,
		Name:            options.Name,
		TypeDescription: options.TypeDescription,
		Clock:           options.Clock,
		Backoff:         options.Backoff,
	})

	src := newSource(lw, example, options.TypeDescription)
	src.meter = newReflectorMeter(options.Name)
	opts := engineOptions(options.Name, clk, logger)
	opts.WatchList, opts.Unversioned = usesWatchList(lw), isFake(lw)
	opts.MinWatchTimeout = options.MinWatchTimeout
	opts.ResyncPeriod = options.ResyncPeriod
	opts.Delay = options.Backoff.DelayWithReset(clk, tarn.DefaultBackoff.Reset)
	opts.PageSize = func() int64 { return s.reflector.WatchListPageSize }
	opts.RetryInternal = func() time.Duration { return s.reflector.MaxInternalErrorRetryDuration }
	opts.ShouldResync = func() bool { return s.reflector.ShouldResync == nil || s.reflector.ShouldResync() }
	opts.OnError = func(ctx context.Context, err error) { DefaultWatchErrorHandler(ctx, s.reflector, err) }
	s.engine, s.failure = newEngine(src, store, opts, s.reached)
	return s.reflector
}

// defaultBackoff is tarn.DefaultBackoff in client-go's terms.
func defaultBackoff() *wait.Backoff {
	b := tarn.DefaultBackoff
	return &wait.Backoff{Duration: b.Base, Cap: b.Max, Factor: 2, Jitter: 1, Steps: 1 << 20}
}

// reached passes a version on to the facade's watch.
func (s *facade) reached(v tarn.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bookmarks != nil {
		s.bookmarks.offer(v, false)
	}
}

// begin fetches the state of a new pass.
func (s *facade) begin(ctx context.Context) error {
	if s.engine == nil {
		return s.failure
	}
	if !s.rest(ctx) {
		return context.Cause(ctx)
	}
	pass, err := tarn.AdaptReflector(adapter.Key{}, s.engine).Fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.heed(err)
		return err
	}
	s.pass, s.ctx, s.failure = pass, ctx, nil
	if s.forget != nil {
		s.forget()
	}
	s.forget = context.AfterFunc(ctx, func() { s.abandon(pass) })
	return nil
}

// heed remembers the server's Retry-After. The caller holds the lock.
func (s *facade) heed(err error) {
	if after := tarn.RetryAfter(err); after > 0 {
		s.busyUntil = s.clock.Now().Add(after)
	}
}

// rest waits until the server accepts requests again; it returns false if ctx ended
// before.
func (s *facade) rest(ctx context.Context) bool {
	s.mu.Lock()
	left := s.busyUntil.Sub(s.clock.Now())
	s.mu.Unlock()
	if left <= 0 {
		return true
	}
	timer := s.clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// commit gives the state to the user's store, whether or not the pass is being
// stopped: it has been read, and client-go would.
func (s *facade) commit() error {
	s.mu.Lock()
	pass, ctx := s.pass, s.ctx
	s.mu.Unlock()
	if pass == nil {
		return nil
	}
	err := pass.Commit(context.WithoutCancel(ctx))
	if err != nil {
		s.abandon(pass)
	}
	return err
}

// abandon releases a pass that will not be followed.
func (s *facade) abandon(pass *tarn.Pass[any]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass == pass {
		pass.Close()
	}
}

// follow returns a watch that lasts as long as the pass. When the pass ends because
// a watch could not be opened, client-go requests another one and gets the reason.
func (s *facade) follow(ctx context.Context, initial bool) *bookmarkWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass == nil {
		return stoppedWatch(ctx)
	}
	pass := s.pass
	s.pass = nil
	s.bookmarks = newBookmarkWatch(ctx, func(ctx context.Context, f *bookmarkWatch) {
		err := pass.Follow(ctx)
		pass.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bookmarks, s.failure = nil, err
		s.heed(err)
		f.end(err == nil)
	})
	s.bookmarks.offer(pass.Version(), initial)
	return s.bookmarks
}

// takeFailure returns why the last pass ended, once.
func (s *facade) takeFailure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failure
	if s.engine != nil {
		s.failure = nil
	}
	return err
}

// refuse fails a list. After some errors client-go lists again at once, which the
// engine has done already: it gets the same answer.
func (s *facade) refuse(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeated = !s.repeated && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
	if s.repeated {
		s.failure = err
	}
	return err
}

// facadeSource is what client-go's reflector lists and watches.
type facadeSource struct{ *facade }

func (s facadeSource) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s facadeSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// ListWithContext begins a pass. The list it returns is empty except for the version.
func (s facadeSource) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	err := s.takeFailure() // of the watch list that this list is to stand in for
	if err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		return nil, s.refuse(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: string(s.pass.Version())}}, nil
}

// WatchWithContext begins a pass, if client-go wants the initial events, and
// follows it.
func (s facadeSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	if initial {
		err := s.begin(ctx)
		if err == nil {
			err = s.commit()
		}
		if err != nil {
			if ctx.Err() != nil {
				return stoppedWatch(ctx), nil
			}
			s.mu.Lock()
			s.failure = err
			s.mu.Unlock()
			return nil, errBegin
		}
		return s.follow(ctx, true), nil
	}
	if err := s.takeFailure(); err != nil {
		return nil, rawWatchError(err)
	}
	return s.follow(ctx, false), nil
}

// errBegin makes client-go ask for a list instead, by which it gets the error
// itself.
var errBegin = errors.New("the pass could not begin")

// facadeStore is what client-go's reflector writes.
type facadeStore struct{ *facade }

// Replace commits a pass that was listed; one that was streamed has been. It is
// called by the goroutine that runs the reflector, so that nothing is written
// once that has returned.
func (s facadeStore) Replace([]any, string) error {
	s.mu.Lock()
	streamed := s.bookmarks != nil
	s.mu.Unlock()
	if streamed {
		return nil
	}
	return s.commit()
}

func (facadeStore) Add(any) error    { return nil }
func (facadeStore) Update(any) error { return nil }
func (facadeStore) Delete(any) error { return nil }
func (facadeStore) Resync() error    { return nil }
