package verify

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
)

type object = *unstructured.Unstructured

// lake is a replica of an embedded server's ConfigMaps, for the length of a test.
type lake struct {
	t      *testing.T
	server *apiserver.Server
	store  *memory.Store[object]
	target Target[object]
	// client and options are those of the sources.
	client  *kube.Client
	options kube.SourceOptions
	// meddle intercepts the lists of the comparison: its result, if any, replaces
	// the nth answer.
	meddle func(n int64, q tarn.ListQuery) error
	lists  atomic.Int64
}

// shape is what may be special about a lake.
type shape struct {
	server apiserver.Options
	source kube.SourceOptions
	// namespaces makes a replica of these, side by side.
	namespaces []string
	transform  func(object) (object, error)
	objects    int
}

func newLake(t *testing.T, s shape) *lake {
	t.Helper()
	s.server.AnyNamespace = true
	l := &lake{t: t, server: apiserver.New(s.server), store: memory.New[object](), options: s.source}
	for i := range s.objects {
		l.put(i, "first")
	}
	if len(s.namespaces) == 0 {
		s.namespaces = []string{""}
	}
	var sections []tarn.Section[object]
	for _, namespace := range s.namespaces {
		source := l.sourceOf(namespace)
		sections = append(sections, tarn.Section[object]{Name: namespace, Source: source, Prefix: kube.KeyPrefix(namespace)})
		// Unshared as what has no wrapper would be.
		l.target.Sources = append(l.target.Sources, &meddler{Source: source.Unshared(), lake: l})
	}
	opts := tarn.Options[object]{Name: "configmaps", Transform: s.transform, WatchList: true, OnError: func(context.Context, error) {}}
	var err error
	if len(sections) == 1 {
		l.target.Replica, err = tarn.NewReplica(sections[0].Source, l.store, opts)
	} else {
		l.target.Replica, err = tarn.NewReplicaOf(sections, l.store, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.target.Name, l.target.Store, l.target.Transform = "configmaps", l.store, s.transform
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = l.target.Replica.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-l.target.Replica.Done()
		l.server.Close()
	})
	if err := l.target.Replica.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// sourceOf is a source of a namespace, of all if it is empty.
func (l *lake) sourceOf(namespace string) *kube.Source[object] {
	l.t.Helper()
	if l.client == nil {
		client, err := kube.NewClient(l.server.Config())
		if err != nil {
			l.t.Fatal(err)
		}
		l.client = client
	}
	source, err := kube.NewSource[object](l.client, kube.Collection{
		Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: namespace,
		Object: reflect.TypeFor[object](),
	}, l.options)
	if err != nil {
		l.t.Fatal(err)
	}
	return source
}

type meddler struct {
	tarn.Source[object]
	lake *lake
}

func (m *meddler) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[object], error) {
	n := m.lake.lists.Add(1)
	if m.lake.meddle != nil {
		if err := m.lake.meddle(n, q); err != nil {
			return tarn.Page[object]{}, err
		}
	}
	return m.Source.List(ctx, q)
}

func nameOf(i int) (namespace, name string) { return fmt.Sprintf("n%d", i%3), fmt.Sprintf("c%03d", i) }

func keyOf(i int) tarn.Key {
	namespace, name := nameOf(i)
	return tarn.Key(namespace + "/" + name)
}

// put writes an object of the server.
func (l *lake) put(i int, text string) {
	l.t.Helper()
	namespace, name := nameOf(i)
	if err := l.server.Put(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "lake"}},
		Data:       map[string]string{"text": text},
	}); err != nil {
		l.t.Error(err)
	}
}

func (l *lake) remove(i int) {
	l.t.Helper()
	namespace, name := nameOf(i)
	if err := l.server.Delete(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}); err != nil {
		l.t.Error(err)
	}
}

// reach waits until the copy is where the server is.
func (l *lake) reach() {
	l.t.Helper()
	if err := l.target.Replica.WaitFor(l.t.Context(), tarn.Version(l.server.Version())); err != nil {
		l.t.Fatal(err)
	}
}

// corrupt changes an object of the copy without the replica's knowledge.
func (l *lake) corrupt(key tarn.Key, change func(o object)) {
	l.t.Helper()
	held, ok := l.store.Get(key)
	if !ok {
		l.t.Fatalf("%s is not there to be spoiled", key)
	}
	wrong := held.DeepCopy()
	change(wrong)
	if err := l.store.Put(key, wrong); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lake) once(o Options) Result {
	l.t.Helper()
	result, err := Once(l.t.Context(), l.target, o)
	if err != nil {
		l.t.Fatal(err)
	}
	return result
}

func setText(text string) func(object) {
	return func(o object) { _ = unstructured.SetNestedField(o.Object, text, "data", "text") }
}

func (l *lake) want(r Result, verdict Verdict, missing, extra, changed int) {
	l.t.Helper()
	if r.Verdict != verdict || r.Missing != missing || r.Extra != extra || r.Changed != changed {
		l.t.Errorf("%s; want %s with %d missing, %d extra, %d changed\n%v", r, verdict, missing, extra, changed, r.Differences)
	}
}
