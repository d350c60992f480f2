package ondisk

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/internal/adapter"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/sqlite"
)

// Secrets of a factory stay in memory, and its Health says so.
func TestKeeperLeavesSecretsOut(t *testing.T) {
	for _, asked := range []bool{false, true} {
		t.Run(fmt.Sprint("asked for: ", asked), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				must(t, server.Put(&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"password": []byte("depths")}}))
				db, err := sqlite.Open(directory(t), sqlite.Options{Logger: quiet})
				must(t, err)
				var opts []Option
				if asked {
					opts = append(opts, WithSecrets())
				}
				factory, err := informers.NewSharedInformerFactoryForConfig(server.Config(), 0, informers.WithDisk(Keeper(db, opts...)))
				must(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				secrets := factory.Core().V1().Secrets().Informer()
				factory.StartWithContext(ctx)
				if result := factory.WaitForCacheSyncWithContext(ctx); result.Err != nil || len(secrets.GetStore().List()) != 1 {
					t.Fatalf("%v", result)
				}
				replica, _ := cache.ReplicaOf(secrets)
				if disk := replica.Health().Disk; disk == nil || strings.Contains(disk.Note, "Secrets") == asked {
					t.Errorf("Health says %+v", disk)
				}
				cancel()
				factory.Shutdown()
				rows, err := db.Query(t.Context(), "SELECT name FROM tarn_collections", sqlite.Limits{})
				must(t, err)
				if written := len(rows.Rows) > 0; written != asked {
					t.Errorf("on disk there are %v", rows.Rows)
				}
				must(t, db.Close())
			})
		})
	}
}

// A cache has a table for each copy, in whatever order they are created. An informer
// that was removed and is created again resumes from its own table.
func TestCacheHasSeveralCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		other := pod("b1", "node-1")
		other.Namespace = "far-away"
		must(t, server.Put(pod("a1", "node-1"), other))
		mapper := apimeta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), apimeta.RESTScopeNamespace)
		w, dir := &tap{}, directory(t)
		startProcess := func(use func(ctx context.Context, c ctrlclient.Cache)) {
			db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet})
			must(t, err)
			pods, err := ctrlcache.WithDisk(Keeper(db))(w.config(server), ctrlclient.Options{
				Mapper: mapper, DefaultNamespaces: map[string]ctrlclient.Config{"default": {}, "far-away": {}},
			})
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); must(t, pods.Start(ctx)) }()
			synctest.Wait()
			use(ctx, pods)
			cancel()
			<-ended
			must(t, db.Close())
		}
		inAnyForm := func(ctx context.Context, c ctrlclient.Cache) {
			t.Helper()
			loose := &unstructured.UnstructuredList{}
			loose.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
			bare := &metav1.PartialObjectMetadataList{}
			bare.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
			for _, list := range []client.ObjectList{bare, loose, &corev1.PodList{}} {
				must(t, c.List(ctx, list))
				if n := apimeta.LenList(list); n != 2 {
					t.Errorf("a %T has %d items", list, n)
				}
			}
			for _, o := range bare.Items {
				if o.Kind != "Pod" {
					t.Errorf("the metadata of %s says that it is a %q", o.Name, o.Kind)
				}
			}
		}
		startProcess(inAnyForm)
		w.taken()
		startProcess(func(ctx context.Context, c ctrlclient.Cache) {
			inAnyForm(ctx, c)
			if got := w.taken(); strings.Contains(got, "stream") || strings.Contains(got, "list") {
				t.Errorf("after a restart the wire shows %q", got)
			}
			must(t, c.RemoveInformer(ctx, &corev1.Pod{}))
			inAnyForm(ctx, c)
			if got := w.taken(); !strings.Contains(got, "probe") || strings.Contains(got, "stream") || strings.Contains(got, "list") {
				t.Errorf("after the informer was removed and asked for again the wire shows %q", got)
			}
		})
		db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet})
		must(t, err)
		rows, err := db.Query(t.Context(), "SELECT name FROM tarn_collections ORDER BY name", sqlite.Limits{})
		must(t, err)
		var names []string
		for _, row := range rows.Rows {
			names = append(names, fmt.Sprint(row[0]))
		}
		if want := []string{"pods_in_default", "pods_in_far_away", "pods_metadata_in_default", "pods_metadata_in_far_away", "pods_unstructured_in_default", "pods_unstructured_in_far_away"}; !slices.Equal(names, want) {
			t.Errorf("the tables are %q, want %q", names, want)
		}
		must(t, db.Close())
	})
}

// Of two informers that would write the same table, the second works in memory only,
// and its error says what to do.
func TestKeeperOfTheSameTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		must(t, server.Put(pod("a1", "node-1")))
		db, err := sqlite.Open(directory(t), sqlite.Options{Logger: quiet})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var errs []error
		for i := range 2 {
			factory, err := informers.NewSharedInformerFactoryForConfig(server.Config(), 0, informers.WithDisk(Keeper(db)))
			must(t, err)
			defer factory.Shutdown()
			pods := factory.Core().V1().Pods().Informer()
			must(t, pods.SetWatchErrorHandler(func(_ *toolscache.Reflector, err error) { errs = append(errs, err) }))
			factory.StartWithContext(ctx)
			if result := factory.WaitForCacheSyncWithContext(ctx); result.Err != nil || len(pods.GetStore().List()) != 1 {
				t.Fatalf("informer %d: %v", i, result)
			}
			replica, _ := cache.ReplicaOf(pods)
			if disk := replica.Health().Disk; disk == nil || (disk.Err != nil) != (i == 1) {
				t.Errorf("informer %d: Health says %+v", i, disk)
			}
		}
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "give one of the two another name") {
			t.Errorf("errors: %v", errs)
		}
		cancel()
		time.Sleep(time.Second)
		must(t, db.Close())
	})
}

// What cannot be read again as what it is, is not written: the next start lists.
func TestATransformToAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		must(t, server.Put(pod("a1", "node-1")))
		onlyMetadata := func(o any) (any, error) {
			p, ok := o.(*corev1.Pod)
			if !ok {
				return o, nil
			}
			return &metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}, nil
		}
		w, dir := &tap{}, directory(t)
		for range 2 {
			w.taken()
			l := startInformer(t, dir, "informers", server, w, choice{transform: onlyMetadata})
			l.sync()
			for _, o := range l.GetStore().List() {
				if _, ok := o.(*metav1.PartialObjectMetadata); !ok {
					t.Errorf("a %T is served", o)
				}
			}
			if got := w.taken(); !strings.Contains(got, "stream") {
				t.Errorf("the wire shows %q, and nothing can have been kept", got)
			}
			l.end()
		}
	})
}

// Keep says what it cannot do.
func TestKeepRefuses(t *testing.T) {
	none := func(cache.ObjectTraits) (tarn.Sink[any], error) { return nil, nil }
	if err := cache.Keep(nil, none, nil); err == nil {
		t.Error("a nil informer was kept")
	}
	foreign := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, &corev1.Pod{}, 0, nil)
	if err := cache.Keep(foreign, none, nil); err == nil || !strings.Contains(err.Error(), "not a shared informer of this package") {
		t.Errorf("client-go's informer: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{})
		defer server.Close()
		l := startInformer(t, directory(t), "informers", server, &tap{}, choice{}, Only())
		l.sync()
		if err := cache.Keep(l.SharedIndexInformer, none, nil); err == nil || !strings.Contains(err.Error(), "already started") {
			t.Errorf("one that runs: %v", err)
		}
		if disk := l.health().Disk; disk == nil || disk.Err == nil || !strings.Contains(disk.Err.Error(), "leave out Only") {
			t.Errorf("with Only: %+v", disk)
		}
		l.end()
	})
}

// The same resource in another version of its API is another content.
func TestAnotherVersionOfTheAPI(t *testing.T) {
	client, err := kube.NewClient(&rest.Config{Host: "nowhere"})
	must(t, err)
	dir := directory(t)
	for _, version := range []string{"v1beta1", "v1"} {
		db, err := sqlite.Open(dir, sqlite.Options{Logger: quiet})
		must(t, err)
		of := client.Origin(kube.Collection{
			Resource: schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "lakes"},
			Object:   reflect.TypeFor[*unstructured.Unstructured](),
		}, kube.SourceOptions{})
		sink, err := Keeper(db).Open(of)
		must(t, err)
		store := tarn.AdaptSink(adapter.Key{}, tarn.ReadStore[any](memory.New[any]()), sink, tarn.Options[any]{Logger: quiet})
		defer store.Close()
		kept, err := store.Restore(t.Context())
		if err != nil || kept.Version() != "" {
			t.Errorf("%s begins with version %q: %v", version, kept.Version(), err)
		}
		lake := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/" + version, "kind": "Lake", "metadata": map[string]any{"name": "a"},
		}}
		must(t, store.Apply([]tarn.Change[any]{{Type: tarn.Add, Key: "a", Object: lake}}, tarn.At("7")))
		must(t, db.Close())
	}
}

// Annotations of kubectl apply are neither on disk nor in the informers, restarted or
// not, unless an option keeps them. The same holds for dropped fields.
func TestKeeperLeavesOutEverywhere(t *testing.T) {
	for dropIn := range dropIns {
		for _, asked := range []bool{false, true} {
			t.Run(fmt.Sprint(dropIn, ", asked for: ", asked), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := apiserver.New(apiserver.Options{AnyNamespace: true})
					defer server.Close()
					p := pod("a1", "node-1")
					p.Annotations = map[string]string{LastApplied: "{}", "mine": "yes"}
					must(t, server.Put(p))
					opts := []Option{Without("spec.nodeName", "no.such.field")}
					if asked {
						opts = []Option{WithLastApplied()}
					}
					w, dir := &tap{}, directory(t)
					for process := range 2 {
						w.taken()
						l := startInformer(t, dir, dropIn, server, w, choice{}, opts...)
						l.sync()
						for _, o := range l.GetStore().List() {
							m, err := apimeta.Accessor(o)
							must(t, err)
							if _, ok := m.GetAnnotations()[LastApplied]; ok != asked || m.GetAnnotations()["mine"] != "yes" {
								t.Errorf("life %d: the annotations are %v", process, m.GetAnnotations())
							}
							if p, ok := o.(*corev1.Pod); ok && !strings.HasPrefix(dropIn, "cache") && (p.Spec.NodeName != "") != asked {
								t.Errorf("life %d: the node is %q", process, p.Spec.NodeName)
							}
						}
						if resumed := !strings.Contains(w.taken(), "stream"); resumed != (process == 1) {
							t.Errorf("life %d: resumed %v", process, resumed)
						}
						l.end()
					}
				})
			})
		}
	}
}

// Health says from the beginning that an informer has a disk.
func TestHealthBeforeTheStart(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil)
	must(t, cache.Keep(informer, func(cache.ObjectTraits) (tarn.Sink[any], error) { return nil, nil }, nil))
	replica, ok := cache.ReplicaOf(informer)
	if !ok || replica.Health().Disk == nil || replica.Health().Disk.Err != nil {
		t.Errorf("Health is %+v", replica.Health())
	}
}
