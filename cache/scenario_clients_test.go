package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/internal/story"
)

// library is one implementation of the constructors that are compared.
type library struct {
	name              string
	newSharedInformer func(ListerWatcher, runtime.Object, SharedIndexInformerOptions) SharedIndexInformer
	newInformer       func(InformerOptions) (Store, Controller)
	newReflector      func(ListerWatcher, any, ReflectorStore, ReflectorOptions) *Reflector
	newIndexer        func() Indexer
	newController     func(*Config) Controller
	newQueue          func(KeyListerGetter) Queue
	waitForCacheSync  func(<-chan struct{}, ...InformerSynced) bool
	shutDown          func(SharedInformer, ResourceEventHandlerRegistration) error
}

var (
	clientGo = library{"client-go",
		upstream.NewSharedIndexInformerWithOptions,
		upstream.NewInformerWithOptions,
		upstream.NewReflectorWithOptions,
		func() Indexer { return upstream.NewIndexer(DeletionHandlingMetaNamespaceKeyFunc, Indexers{}) },
		upstream.New,
		func(known KeyListerGetter) Queue {
			return upstream.NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
		},
		upstream.WaitForCacheSync,
		upstreamShutDown,
	}
	ours = library{"ours",
		NewSharedIndexInformerWithOptions,
		NewInformerWithOptions,
		NewReflectorWithOptions,
		func() Indexer { return NewIndexer(DeletionHandlingMetaNamespaceKeyFunc, Indexers{}) },
		New,
		func(known KeyListerGetter) Queue {
			return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
		},
		WaitForCacheSync,
		ShutDownEventHandler,
	}
)

// client is something that lists and watches on behalf of a user.
type client interface {
	run(ctx context.Context)
	// do is what the user does; it returns what came of it.
	do(a story.Action) string
	// observe gives what can be seen at the end, by section.
	observe() map[string]string
}

// kinds are the ways to use a library.
var kinds = map[string]func(library, scenario, ListerWatcher, *recorder) client{
	"shared":    newSharedClient,
	"informer":  newInformerClient,
	"reflector": newReflectorClient,
	"indexer":   newIndexerClient,
	"queue":     newQueueClient,
}

// kindNames are the usual ones.
var kindNames = []string{"shared", "informer", "reflector", "indexer"}

// sharedClient is a shared informer with handlers.
type sharedClient struct {
	library  library
	scenario scenario
	recorder *recorder
	informer SharedIndexInformer
	handles  map[string]ResourceEventHandlerRegistration
	ran      int
}

func newSharedClient(l library, s scenario, lw ListerWatcher, r *recorder) client {
	c := &sharedClient{library: l, scenario: s, recorder: r, handles: map[string]ResourceEventHandlerRegistration{}}
	c.informer = l.newSharedInformer(lw, s.objects().example(), SharedIndexInformerOptions{
		ResyncPeriod: s.With.Duration("resync", 0),
		Indexers:     s.indexers(),
	})
	if !s.With.Has("defaulthandler") {
		must(c.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, reflector *Reflector, err error) {
			r.noteError(err)
			if want := describeType(s.objects().example()); reflector.TypeDescription() != want {
				r.note("errors", "the reflector is for %s", reflector.TypeDescription())
			}
		}))
	}
	if transform, ok := s.transform(); ok {
		must(c.informer.SetTransform(transform))
	}
	if !s.With.Has("nohandler") {
		c.do(story.Action{Verb: "handler", Words: []string{"h"}})
	}
	return c
}

func (c *sharedClient) run(ctx context.Context) {
	c.ran++
	c.informer.RunWithContext(ctx)
}

func (c *sharedClient) do(a story.Action) string {
	name := ""
	if len(a.Words) > 0 {
		name = a.Words[0]
	}
	switch a.Verb {
	case "handler":
		options := HandlerOptions{}
		for _, word := range a.Words[1:] {
			if value, ok := strings.CutPrefix(word, "resync="); ok {
				period, err := time.ParseDuration(value)
				must(err)
				options.ResyncPeriod = &period
			}
		}
		handle, err := c.informer.AddEventHandlerWithOptions(c.recorder.handler(name), options)
		if err != nil {
			return stripAddress(err.Error())
		}
		c.handles[name] = handle
		return ""
	case "remove":
		return result(c.informer.RemoveEventHandler(c.handles[name]))
	case "shutdown":
		return result(c.library.shutDown(c.informer, c.handles[name]))
	case "transform":
		return result(c.informer.SetTransform(nil))
	case "errorhandler":
		return result(c.informer.SetWatchErrorHandler(func(*Reflector, error) {}))
	case "indexers":
		return result(c.informer.AddIndexers(Indexers{name: indexByName("")}))
	case "index":
		objects, err := c.informer.GetIndexer().ByIndex(name, a.Words[1])
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d objects", len(objects))
	case "synced":
		start := time.Now()
		ok := c.library.waitForCacheSync(nil, c.informer.HasSynced, c.handles["h"].HasSynced)
		return fmt.Sprintf("%v after %v", ok, time.Since(start))
	case "check":
		return strings.TrimSpace(showStore(c.informer.GetStore()) + c.synced())
	}
	panic("a shared informer cannot " + a.Verb)
}

func (c *sharedClient) synced() string {
	text := fmt.Sprintf("informer %v", c.informer.HasSynced())
	for _, name := range slices.Sorted(keysOf(c.handles)) {
		text += fmt.Sprintf(", %s %v", name, c.handles[name].HasSynced())
	}
	return text + "\n"
}

func (c *sharedClient) observe() map[string]string {
	store := showStore(c.informer.GetStore())
	if v := c.informer.LastSyncResourceVersion(); !strings.Contains(store, "(version "+v+")") {
		store += "last version " + v + "\n"
	}
	seen := map[string]string{
		"handler": c.recorder.handled(),
		"store":   store,
		"synced":  c.synced(),
		"errors":  c.recorder.text("errors"),
		"panics":  c.recorder.text("panics"),
		"results": c.recorder.text("results"),
	}
	if c.library.name == ours.name {
		seen["reported"] = c.recorder.text("reported")
	}
	return seen
}

// informerClient is an informer with one handler, as NewInformer makes it.
type informerClient struct {
	recorder   *recorder
	store      Store
	controller Controller
}

func newInformerClient(l library, s scenario, lw ListerWatcher, r *recorder) client {
	c := &informerClient{recorder: r}
	transform, _ := s.transform()
	c.store, c.controller = l.newInformer(InformerOptions{
		ListerWatcher: lw,
		ObjectType:    s.objects().example(),
		Handler:       r.handler("h"),
		ResyncPeriod:  s.With.Duration("resync", 0),
		Indexers:      s.indexers(),
		Transform:     transform,

		MinWatchTimeout: s.With.Duration("minwatch", 0),
	})
	return c
}

func (c *informerClient) run(ctx context.Context) { c.controller.RunWithContext(ctx) }
func (c *informerClient) do(story.Action) string  { return "" }

func (c *informerClient) observe() map[string]string {
	return map[string]string{
		"handler": c.recorder.handled(),
		"store":   showStore(c.store),
		"synced":  fmt.Sprintf("informer %v, h %[1]v\n", c.controller.HasSynced()),
		"panics":  c.recorder.text("panics"),
	}
}

// reflectorClient is a reflector into a store of somebody else.
type reflectorClient struct {
	recorder  *recorder
	reflector *Reflector
}

func newReflectorClient(l library, s scenario, lw ListerWatcher, r *recorder) client {
	refuses := s.With["refuses"]
	var store ReflectorStore = recordingStore{r, &refuses}
	if s.With["store"] != "plain" {
		store = versionedStore{store.(recordingStore), new(string)}
	}
	return &reflectorClient{r, newScenarioReflector(l, s, lw, store)}
}

func newScenarioReflector(l library, s scenario, lw ListerWatcher, store ReflectorStore) *Reflector {
	reflector := l.newReflector(lw, s.objects().example(), store, ReflectorOptions{
		Name:            "r",
		ResyncPeriod:    s.With.Duration("resync", 0),
		MinWatchTimeout: s.With.Duration("minwatch", 0),
	})
	reflector.WatchListPageSize = s.With.Number("pagesize")
	reflector.MaxInternalErrorRetryDuration = s.With.Duration("retryinternal", 0)
	return reflector
}

func (c *reflectorClient) run(ctx context.Context) { c.reflector.RunWithContext(ctx) }
func (c *reflectorClient) do(story.Action) string  { return "" }

func (c *reflectorClient) observe() map[string]string {
	return map[string]string{
		"calls":  c.recorder.text("calls") + "last version " + c.reflector.LastSyncResourceVersion() + "\n",
		"panics": c.recorder.text("panics"),
	}
}

// indexerClient is a reflector into an indexer of the same library.
type indexerClient struct {
	reflectorClient
	indexer Indexer
}

func newIndexerClient(l library, s scenario, lw ListerWatcher, r *recorder) client {
	c := &indexerClient{indexer: l.newIndexer()}
	c.recorder, c.reflector = r, newScenarioReflector(l, s, lw, c.indexer)
	return c
}

func (c *indexerClient) observe() map[string]string {
	// The version is the reflector's: client-go does not pass bookmarks to an
	// indexer.
	content, _, _ := strings.Cut(showStore(c.indexer), " (version")
	return map[string]string{
		"store":  fmt.Sprintf("%s (version %s)\n", content, c.reflector.LastSyncResourceVersion()),
		"panics": c.recorder.text("panics"),
	}
}

// queueClient is a controller that processes a queue of deltas.
type queueClient struct {
	recorder   *recorder
	store      Indexer
	controller Controller
}

func newQueueClient(l library, s scenario, lw ListerWatcher, r *recorder) client {
	c := &queueClient{recorder: r, store: l.newIndexer()}
	handler := r.handler("h")
	c.controller = l.newController(&Config{
		Queue:             l.newQueue(c.store),
		ListerWatcher:     lw,
		ObjectType:        s.objects().example(),
		FullResyncPeriod:  s.With.Duration("resync", 0),
		MinWatchTimeout:   s.With.Duration("minwatch", 0),
		WatchListPageSize: s.With.Number("pagesize"),
		WatchErrorHandler: func(_ *Reflector, err error) { r.noteError(err) },
		Process: func(object any, initial bool) error {
			for _, d := range object.(Deltas) {
				old, known, err := c.store.Get(d.Object)
				switch {
				case err != nil:
					return err
				case d.Type == Deleted:
					must(c.store.Delete(d.Object))
					handler.OnDelete(d.Object)
				case known:
					must(c.store.Update(d.Object))
					handler.OnUpdate(old, d.Object)
				default:
					must(c.store.Add(d.Object))
					handler.OnAdd(d.Object, initial)
				}
			}
			return nil
		},
	})
	return c
}

func (c *queueClient) run(ctx context.Context) { c.controller.RunWithContext(ctx) }
func (c *queueClient) do(story.Action) string  { return "" }

func (c *queueClient) observe() map[string]string {
	content, _, _ := strings.Cut(showStore(c.store), " (version")
	return map[string]string{
		"handler": c.recorder.handled(),
		"store":   fmt.Sprintf("%s (version %s)\n", content, c.controller.LastSyncResourceVersion()),
		"synced":  fmt.Sprintf("informer %v, h %[1]v\n", c.controller.HasSynced()),
		"errors":  c.recorder.text("errors"),
		"panics":  c.recorder.text("panics"),
	}
}

// live lets a client run and its user act, for as long as the scenario lasts, and
// returns how long it took to stop.
func live(c client, s scenario, r *recorder) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start := time.Now()
	ended := make(chan struct{})
	run := func(done chan struct{}) {
		defer close(done)
		c.run(ctx)
	}
	user := s.User
	for len(user) > 0 && user[0].At == story.Before {
		c.do(user[0])
		user = user[1:]
	}
	go run(ended)
	for _, a := range user {
		time.Sleep(time.Until(start.Add(a.At)))
		synctest.Wait()
		switch a.Verb {
		case "stop":
			cancel()
			<-ended
		case "run":
			again := make(chan struct{})
			go run(again)
			<-again
			r.note("results", "%v run: returned", a.At)
		default:
			if text := c.do(a); text != "" {
				r.note("results", "%v %s %s: %s", a.At, a.Verb, strings.Join(a.Words, " "), text)
			}
		}
	}
	time.Sleep(time.Until(start.Add(s.With.Duration("for", 10*time.Second))))
	synctest.Wait()
	stopping := time.Now()
	cancel()
	<-ended
	return time.Since(stopping)
}
