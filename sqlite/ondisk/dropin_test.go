package ondisk

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
	"github.com/tarnproject/tarn/informers/metadatainformer"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// quiet is for tests in which content is dropped on purpose.
var quiet = slog.New(slog.DiscardHandler)

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

// choice is what a drop-in is to hold.
type choice struct {
	namespace, labels string
	transform         toolscache.TransformFunc
}

func (c choice) tweak(o *metav1.ListOptions) { o.LabelSelector = c.labels }

// dropIns are the ways to an informer of pods that is kept on disk. run returns
// when ctx has ended and everything with it.
var dropIns = map[string]func(t *testing.T, cfg *rest.Config, keep kube.Keeper, c choice) (pods toolscache.SharedIndexInformer, run func(ctx context.Context)){
	"informers": func(t *testing.T, cfg *rest.Config, keep kube.Keeper, c choice) (toolscache.SharedIndexInformer, func(context.Context)) {
		factory, err := informers.NewSharedInformerFactoryForConfig(cfg, 0, informers.WithDisk(keep),
			informers.WithNamespace(c.namespace), informers.WithTweakListOptions(c.tweak), informers.WithTransform(c.transform))
		must(t, err)
		return factory.Core().V1().Pods().Informer(), runner(factory)
	},
	"dynamicinformer": func(t *testing.T, cfg *rest.Config, keep kube.Keeper, c choice) (toolscache.SharedIndexInformer, func(context.Context)) {
		factory, err := dynamicinformer.NewFactoryForConfig(cfg, 0, c.namespace, c.tweak, dynamicinformer.WithDisk(keep))
		must(t, err)
		pods := factory.ForResource(podsResource).Informer()
		must(t, pods.SetTransform(c.transform))
		return pods, runner(factory)
	},
	"metadatainformer": func(t *testing.T, cfg *rest.Config, keep kube.Keeper, c choice) (toolscache.SharedIndexInformer, func(context.Context)) {
		factory, err := metadatainformer.NewFactoryForConfig(cfg, 0, metadatainformer.WithDisk(keep),
			metadatainformer.WithNamespace(c.namespace), metadatainformer.WithTweakListOptions(c.tweak), metadatainformer.WithTransform(c.transform))
		must(t, err)
		return factory.ForResource(podsResource).Informer(), runner(factory)
	},
	"ctrlcache": func(t *testing.T, cfg *rest.Config, keep kube.Keeper, c choice) (toolscache.SharedIndexInformer, func(context.Context)) {
		mapper := apimeta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), apimeta.RESTScopeNamespace)
		opts := ctrlclient.Options{Mapper: mapper, DefaultTransform: c.transform}
		if c.namespace != "" {
			opts.DefaultNamespaces = map[string]ctrlclient.Config{c.namespace: {}}
		}
		if c.labels != "" {
			selector, err := metav1.ParseToLabelSelector(c.labels)
			must(t, err)
			opts.DefaultLabelSelector, err = metav1.LabelSelectorAsSelector(selector)
			must(t, err)
		}
		all, err := ctrlcache.WithDisk(keep)(cfg, opts)
		must(t, err)
		pods, err := all.GetInformer(t.Context(), &corev1.Pod{})
		must(t, err)
		return pods.(toolscache.SharedIndexInformer), func(ctx context.Context) { must(t, all.Start(ctx)) }
	},
	"cache over a ListerWatcher": func(t *testing.T, cfg *rest.Config, keep kube.Keeper, c choice) (toolscache.SharedIndexInformer, func(context.Context)) {
		client, err := kube.NewClient(cfg)
		must(t, err)
		pods := kubernetes.NewForConfigOrDie(cfg).CoreV1().Pods(c.namespace)
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				c.tweak(&o)
				return pods.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				c.tweak(&o)
				return pods.Watch(ctx, o)
			},
		}, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		must(t, informer.SetTransform(c.transform))
		must(t, cache.Keep(informer, func(objects cache.ObjectTraits) (tarn.Sink[any], error) {
			of := client.Origin(kube.Collection{Resource: podsResource, Object: podType, Namespace: c.namespace, LabelSelector: c.labels},
				kube.SourceOptions{Unshared: !objects.Shared})
			of.Transformed = objects.Transformed
			return keep.Open(of)
		}, keep.Strip))
		return informer, informer.RunWithContext
	},
}

func runner(factory interface {
	Start(<-chan struct{})
	Shutdown()
}) func(context.Context) {
	return func(ctx context.Context) {
		factory.Start(ctx.Done())
		factory.Shutdown()
	}
}

// keptInformer is one process with an informer that has a handler.
type keptInformer struct {
	toolscache.SharedIndexInformer
	t       *testing.T
	db      *sqlite.DB
	handler toolscache.ResourceEventHandlerRegistration
	cancel  context.CancelFunc
	ended   chan struct{}

	mu     sync.Mutex
	events []string
	mirror map[string]string
}

func startInformer(t *testing.T, dir, dropIn string, server *apiserver.Server, w *tap, c choice, opts ...Option) *keptInformer {
	t.Helper()
	db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	l := &keptInformer{t: t, db: db, cancel: cancel, ended: make(chan struct{}), mirror: map[string]string{}}
	var run func(context.Context)
	l.SharedIndexInformer, run = dropIns[dropIn](t, w.config(server), Keeper(db, opts...), c)
	must(t, l.SetWatchErrorHandler(func(*toolscache.Reflector, error) {}))
	l.handler, err = l.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) { l.take("+", o, initial) },
		UpdateFunc: func(old, o any) {
			l.mu.Lock()
			if before := l.mirror[key(old)]; before != state(old) {
				t.Errorf("an update of %s gives %s as what was, and the last event said %s", key(old), state(old), before)
			}
			l.mu.Unlock()
			l.take("~", o, false)
		},
		DeleteFunc: func(o any) { l.take("-", o, false) },
	})
	must(t, err)
	go func() { defer close(l.ended); run(ctx) }()
	return l
}

func key(object any) string {
	k, _ := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	return k
}

func state(object any) string {
	o, err := apimeta.Accessor(object)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %v %v", o.GetResourceVersion(), o.GetLabels(), o.GetAnnotations())
}

func (l *keptInformer) take(what string, object any, initial bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := key(object)
	if what == "-" {
		delete(l.mirror, name)
	} else {
		l.mirror[name] = state(object)
	}
	what += strings.TrimPrefix(name, "default/")
	if initial {
		what += "*"
	}
	l.events = append(l.events, what)
}

// seenEvents are the events that the handler got, the initial adds sorted.
func (l *keptInformer) seenEvents() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.events) && strings.HasSuffix(l.events[n], "*") {
		n++
	}
	slices.Sort(l.events[:n])
	return strings.Join(l.events, " ")
}

func (l *keptInformer) sync() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), l.HasSynced, l.handler.HasSynced) {
		l.t.Fatalf("not synced within 5 s: %s", l.health())
	}
	synctest.Wait()
}

func (l *keptInformer) health() tarn.Health {
	replica, ok := cache.ReplicaOf(l.SharedIndexInformer)
	if !ok {
		l.t.Fatal("there is no replica behind the informer")
	}
	return replica.Health()
}

// converged compares the informer's store, its index and the handler's view with
// what the server has.
func (l *keptInformer) converged(server *apiserver.Server) {
	l.t.Helper()
	synctest.Wait()
	list, err := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().Pods("").List(l.t.Context(), metav1.ListOptions{})
	must(l.t, err)
	want, namespaces := map[string]string{}, map[string]int{}
	for i := range list.Items {
		want[key(&list.Items[i])] = state(&list.Items[i])
		namespaces[list.Items[i].Namespace]++
	}
	got := map[string]string{}
	for _, o := range l.GetIndexer().List() {
		got[key(o)] = state(o)
	}
	if !maps.Equal(got, want) {
		l.t.Errorf("the store has %v, the server %v", got, want)
	}
	for namespace, n := range namespaces {
		found, err := l.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
		if err != nil || len(found) != n {
			l.t.Errorf("the index has %d objects of %s, the server %d: %v", len(found), namespace, n, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !maps.Equal(l.mirror, want) {
		l.t.Errorf("the handler has %v, the server %v", l.mirror, want)
	}
}

func (l *keptInformer) end() {
	l.t.Helper()
	l.cancel()
	<-l.ended
	must(l.t, l.db.Close())
}

// Every drop-in resumes where the previous process stopped: it sends a probe and a
// watch, and handlers get the content of the disk and then the differences.
func TestInformersRestart(t *testing.T) {
	tests := []struct {
		name      string
		meanwhile func(t *testing.T, s *apiserver.Server)
		requests  string
		events    string
	}{
		{"nothing happened", func(*testing.T, *apiserver.Server) {}, "uid probe watch", "+a1* +a2* +b1*"},
		{"pods changed", func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(pod("a1", "node-9"), pod("c1", "node-3")))
			must(t, s.Delete(pod("a2", "")))
		}, "uid probe watch", "+a1* +a2* +b1* ~a1 +c1 -a2"},
		{"others changed", func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}))
		}, "uid probe watch", "+a1* +a2* +b1*"},
		{"the history is gone", func(t *testing.T, s *apiserver.Server) {
			must(t, s.Put(pod("a1", "node-9"), pod("c1", "node-3")))
			must(t, s.Delete(pod("b1", "")))
			s.Compact()
		}, "uid probe watch stream", "+a1* +a2* +b1* -b1 ~a1 +c1*"},
	}
	for dropIn := range dropIns {
		for _, test := range tests {
			t.Run(dropIn+", "+test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := apiserver.New(apiserver.Options{AnyNamespace: true})
					defer server.Close()
					must(t, server.Put(pod("a1", "node-1"), pod("a2", "node-1"), pod("b1", "node-2")))
					w, dir := &tap{}, directory(t)
					first := startInformer(t, dir, dropIn, server, w, choice{})
					first.sync()
					first.converged(server)
					first.end()
					w.taken()
					test.meanwhile(t, server)
					time.Sleep(42 * time.Second)

					w.ready = make(chan struct{})
					second := startInformer(t, dir, dropIn, server, w, choice{})
					synctest.Wait()
					if h := second.health(); !h.FromDisk || !strings.Contains(h.String(), "from disk, 42s old") {
						t.Errorf("while the server is unreachable Health says %q", h)
					}
					if n := len(second.GetStore().List()); n != 3 {
						t.Errorf("while the server is unreachable %d objects are served", n)
					}
					if got := second.seenEvents(); got != "+a1* +a2* +b1*" {
						t.Errorf("while the server is unreachable the handler got %q", got)
					}
					if second.HasSynced() || second.handler.HasSynced() {
						t.Error("synced, although nobody knows what happened meanwhile")
					}
					close(w.ready)
					second.sync()
					second.converged(server)
					// The short watch of a quiet collection ends after 3 s.
					if got := strings.Join(slices.Compact(strings.Fields(w.taken())), " "); got != test.requests {
						t.Errorf("the wire shows %q, want %q", got, test.requests)
					}
					// A relist has no order.
					got, want := strings.Fields(second.seenEvents()), strings.Fields(test.events)
					slices.Sort(got)
					slices.Sort(want)
					if !slices.Equal(got, want) {
						t.Errorf("the handler got %q, want %q", got, want)
					}
					must(t, server.Put(pod("d1", "node-4")))
					time.Sleep(time.Second)
					second.converged(server)
					second.end()
				})
			})
		}
	}
}

// Content under another namespace, selector or transform is not used; under the same ones it
// is.
func TestInformersOfAnotherSelection(t *testing.T) {
	note := func(o any) (any, error) {
		m, err := apimeta.Accessor(o)
		if err == nil {
			m.SetAnnotations(map[string]string{"seen": "yes"})
		}
		return o, err
	}
	for dropIn := range dropIns {
		for _, test := range []struct {
			name          string
			before, after choice
			opts          [2][]Option
			resumes       bool
		}{
			{name: "namespace", before: choice{namespace: "default"}, after: choice{namespace: "other"}},
			{name: "labels", after: choice{labels: "app=a"}},
			{name: "transform", after: choice{transform: note}},
			{name: "transform of another name", before: choice{transform: note}, after: choice{transform: note},
				opts: [2][]Option{{Transform("v1")}, {Transform("v2")}}},
			{name: "the same", resumes: true},
			{name: "the same selection", before: choice{labels: "app=a"}, after: choice{labels: "app=a"}, resumes: true},
			{name: "the same transform", before: choice{transform: note}, after: choice{transform: note}, resumes: true},
			{name: "the same name of a transform", before: choice{transform: note}, after: choice{transform: note},
				opts: [2][]Option{{Transform("v1")}, {Transform("v1")}}, resumes: true},
		} {
			t.Run(dropIn+", "+test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := apiserver.New(apiserver.Options{AnyNamespace: true})
					defer server.Close()
					other := pod("a1", "node-1")
					other.Namespace = "other"
					must(t, server.Put(pod("a1", "node-1"), pod("b1", "node-2"), other))
					w, dir := &tap{}, directory(t)
					first := startInformer(t, dir, dropIn, server, w, test.before, test.opts[0]...)
					first.sync()
					first.end()
					w.taken()

					second := startInformer(t, dir, dropIn, server, w, test.after, test.opts[1]...)
					second.sync()
					if resumed := !strings.Contains(w.taken(), "stream"); resumed != test.resumes {
						t.Errorf("resumed %v, want %v: %v", resumed, test.resumes, second.health().Disk)
					}
					for _, o := range second.GetStore().List() {
						m, err := apimeta.Accessor(o)
						must(t, err)
						switch noted := m.GetAnnotations()["seen"] == "yes"; {
						case test.after.labels != "" && m.GetLabels()["app"] != "a",
							test.after.namespace != "" && m.GetNamespace() != test.after.namespace,
							noted != (test.after.transform != nil):
							t.Errorf("%s is not what was asked for: %s", key(o), state(o))
						}
					}
					if len(second.GetStore().List()) == 0 {
						t.Error("there is nothing")
					}
					second.end()
				})
			})
		}
	}
}
