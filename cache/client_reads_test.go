package cache

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/proxytest"
)

// serveTolerant starts a server with some pods of two namespaces.
func serveTolerant(t *testing.T) (*apiserver.Server, *rest.Config) {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{AnyNamespace: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for i := range 20 {
		for _, namespace := range []string{"north", "south"} {
			object := tolerant(fmt.Sprint("p", i))
			object.Namespace, object.ResourceVersion = namespace, ""
			if err := server.Put(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	return server, server.Config()
}

// coreClient makes the REST client of a clientset, whose requests are recorded.
func coreClient(t *testing.T, config *rest.Config, change func(*rest.Config)) (rest.Interface, *proxytest.Recorder) {
	t.Helper()
	sent := &proxytest.Recorder{}
	config = rest.CopyConfig(config)
	config.WrapTransport = sent.Wrap
	change(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.CoreV1().RESTClient(), sent
}

func unchanged(*rest.Config) {}

// readsWire says whether an informer decodes what it reads by itself.
func readsWire(i SharedIndexInformer) bool { return i.(*informer).supplied != nil }

// seen is what can be seen of an informer or controller over a REST client.
type readsSeen struct {
	Requests []string
	Objects  []metav1.Object
	Calls    []string
}

type handlerLog struct {
	mu   sync.Mutex
	list []string
}

func (c *handlerLog) add(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call)
}

func (c *handlerLog) handler() ResourceEventHandler {
	name := func(object any) string { key, _ := DeletionHandlingMetaNamespaceKeyFunc(object); return key }
	return ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.add("add " + name(object)) },
		UpdateFunc: func(_, object any) { c.add("update " + name(object)) },
		DeleteFunc: func(object any) { c.add("delete " + name(object)) },
	}
}

// observe runs an informer through a first state and a change of each kind.
func observeReads(t *testing.T, server *apiserver.Server, store Store, controller interface {
	RunWithContext(context.Context)
	HasSynced() bool
}, called *handlerLog, sent *proxytest.Recorder) (s readsSeen) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); controller.RunWithContext(ctx) }()
	defer func() { cancel(); <-done }()
	if !WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		t.Fatal("not synced")
	}
	for _, object := range store.List() {
		s.Objects = append(s.Objects, object.(metav1.Object))
	}
	slices.SortFunc(s.Objects, func(a, b metav1.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	changed := tolerant("extra")
	changed.Namespace, changed.ResourceVersion = "north", ""
	for _, call := range []string{"add", "update", "delete"} {
		var err error
		switch changed.Labels["step"] = call; call {
		case "delete":
			err = server.Delete(changed)
		default:
			err = server.Put(changed)
		}
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(20 * time.Second)
		for time.Now().Before(deadline) {
			called.mu.Lock()
			got := slices.Contains(called.list, call+" north/extra")
			called.mu.Unlock()
			if got {
				break
			}
			time.Sleep(time.Millisecond) // a real socket
		}
	}
	called.mu.Lock()
	defer called.mu.Unlock()
	slices.Sort(called.list)
	s.Calls, s.Requests = called.list, sent.Requests()
	return s
}

// An informer or controller over NewListWatchFromClient sends the requests that client-go's
// sends, and holds what client-go's holds, although it decodes them by itself.
func TestClientReadsSameAsStock(t *testing.T) {
	server, config := serveTolerant(t)
	byNode := fields.OneTermNotEqualSelector("spec.nodeName", "gone")
	modify := func(o *metav1.ListOptions) {
		o.LabelSelector = "app=heron"
		if o.Watch {
			o.LabelSelector = "app==heron"
		}
	}
	for name, change := range map[string]func(*rest.Config){
		"as it is": unchanged,
		"protobuf": func(c *rest.Config) { c.ContentType = runtime.ContentTypeProtobuf },
		"either": func(c *rest.Config) {
			c.AcceptContentTypes = "application/json;q=0.5,application/vnd.kubernetes.protobuf"
		},
		"credentials": func(c *rest.Config) { c.UserAgent, c.Impersonate.UserName = "lake/1", "ops" },
		"no gzip":     func(c *rest.Config) { c.DisableCompression = true },
		"a timeout":   func(c *rest.Config) { c.Timeout = time.Minute },
	} {
		for _, filtered := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " filtered=", filtered), func(t *testing.T) {
				client, sent := coreClient(t, config, change)
				theirs := upstream.NewListWatchFromClient(client, "pods", "north", byNode)
				if filtered {
					theirs = upstream.NewFilteredListWatchFromClient(client, "pods", "", modify)
				}
				called := &handlerLog{}
				stock := upstream.NewSharedIndexInformer(theirs, &corev1.Pod{}, 0, Indexers{})
				_, _ = stock.AddEventHandler(called.handler())
				want := observeReads(t, server, stock.GetStore(), stock, called, sent)
				if len(want.Objects) < 20 || len(want.Requests) == 0 || len(want.Calls) < 23 {
					t.Fatalf("%d objects by %d requests, %d calls", len(want.Objects), len(want.Requests), len(want.Calls))
				}

				lw := func() (*ListWatch, *proxytest.Recorder) {
					client, sent := coreClient(t, config, change)
					if filtered {
						return NewFilteredListWatchFromClient(client, "pods", "", modify), sent
					}
					return NewListWatchFromClient(client, "pods", "north", byNode), sent
				}
				called = &handlerLog{}
				ours, sent := lw()
				shared := NewSharedIndexInformer(ours, &corev1.Pod{}, 0, Indexers{})
				_, _ = shared.AddEventHandler(called.handler())
				if !readsWire(shared) {
					t.Error("the informer calls the REST client's decoder")
				}
				if diff := gocmp.Diff(want, observeReads(t, server, shared.GetStore(), shared, called, sent)); diff != "" {
					t.Errorf("client-go and our informer differ (-client-go +ours):\n%s", diff)
				}

				called = &handlerLog{}
				ours, sent = lw()
				store, controller := NewInformerWithOptions(InformerOptions{ListerWatcher: ours, ObjectType: &corev1.Pod{}, Handler: called.handler()})
				if diff := gocmp.Diff(want, observeReads(t, server, store, controller, called, sent)); diff != "" {
					t.Errorf("client-go and our controller differ (-client-go +ours):\n%s", diff)
				}
			})
		}
	}
}

// otherGetter is not a REST client of client-go's.
type otherGetter struct{ *rest.RESTClient }

// What is not known to decode as the wire says is called as it is.
func TestClientReadsThatAreNotKnown(t *testing.T) {
	_, config := serveTolerant(t)
	client, _ := coreClient(t, config, unchanged)
	own := client.(*rest.RESTClient)
	decodingBy := func(negotiated runtime.NegotiatedSerializer, media ...string) *rest.RESTClient {
		config := rest.CopyConfig(config)
		config.ContentType = strings.Join(media, "")
		config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, negotiated
		client, err := rest.RESTClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	pods := func(c Getter) *ListWatch { return NewListWatchFromClient(c, "pods", "", fields.Everything()) }
	others := runtime.NewScheme()
	if err := corev1.AddToScheme(others); err != nil {
		t.Fatal(err)
	}
	others.AddTypeDefaultingFunc(&corev1.PodList{}, func(any) {})
	twoKinds := runtime.NewScheme()
	twoKinds.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	twoKinds.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Whale"), &corev1.Pod{})
	noList := runtime.NewScheme()
	noList.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{})
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	lent := pods(own)
	lent.WatchFuncWithContext = pods(own).WatchFuncWithContext
	replaced := pods(own)
	replaced.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return pods(own).ListWithContextFunc(ctx, o)
	}
	copied := *pods(own)
	for name, c := range map[string]struct {
		lw      ListerWatcher
		example runtime.Object
		known   bool
	}{
		"a REST client of a clientset":       {pods(own), &corev1.Pod{}, true},
		"a copied ListWatch":                 {&copied, &corev1.Pod{}, true},
		"with the semantics of a client":     {ToListWatcherWithWatchListSemantics(pods(own), own), &corev1.Pod{}, true},
		"a REST client with another scheme":  {pods(decodingBy(serializer.NewCodecFactory(others).WithoutConversion())), &corev1.Pod{}, true},
		"a REST client that sets defaults":   {pods(decodingBy(serializer.NewCodecFactory(others))), &corev1.Pod{}, false},
		"a REST client without the type":     {pods(decodingBy(serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion())), &corev1.Pod{}, false},
		"a REST client that wants YAML":      {pods(decodingBy(scheme.Codecs.WithoutConversion(), runtime.ContentTypeYAML)), &corev1.Pod{}, false},
		"a type of two kinds":                {pods(decodingBy(serializer.NewCodecFactory(twoKinds).WithoutConversion())), &corev1.Pod{}, false},
		"a kind without lists":               {pods(decodingBy(serializer.NewCodecFactory(noList).WithoutConversion())), &corev1.Pod{}, false},
		"an object without a Go type":        {pods(own), untyped, false},
		"another type":                       {pods(own), &unstructured.Unstructured{}, false},
		"no type":                            {pods(own), nil, false},
		"a nil type":                         {pods(own), (*corev1.Pod)(nil), false},
		"a wrapper of a REST client":         {pods(otherGetter{own}), &corev1.Pod{}, false},
		"a fake REST client":                 {pods(&restfake.RESTClient{}), &corev1.Pod{}, false},
		"no REST client":                     {pods(nil), &corev1.Pod{}, false},
		"a nil REST client":                  {pods((*rest.RESTClient)(nil)), &corev1.Pod{}, false},
		"an empty REST client":               {pods(&rest.RESTClient{}), &corev1.Pod{}, false},
		"a function of another ListWatch":    {lent, &corev1.Pod{}, false},
		"a function of the program":          {replaced, &corev1.Pod{}, false},
		"functions of client-go":             {upstream.NewListWatchFromClient(own, "pods", "", fields.Everything()), &corev1.Pod{}, false},
		"no functions":                       {&ListWatch{}, &corev1.Pod{}, false},
		"no ListWatch":                       {(*ListWatch)(nil), &corev1.Pod{}, false},
		"nothing":                            {nil, &corev1.Pod{}, false},
		"a resource that cannot be in a URL": {NewListWatchFromClient(own, "po/ds", "", fields.Everything()), &corev1.Pod{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readsWire(NewSharedIndexInformer(c.lw, c.example, 0, Indexers{})); got != c.known {
				t.Errorf("reads the wire: %v, want %v", got, c.known)
			}
		})
	}
}

// A function that a program has put into a ListWatch is called, before the informer was made and
// afterwards.
func TestClientReadsWithAFunctionOfTheProgram(t *testing.T) {
	_, config := serveTolerant(t)
	client, _ := coreClient(t, config, unchanged)
	for _, early := range []bool{true, false} {
		withAFunctionOfTheProgram(t, client, early)
	}
}

func withAFunctionOfTheProgram(t *testing.T, client rest.Interface, early bool) {
	lw := NewListWatchFromClient(client, "pods", "north", fields.Everything())
	var opened atomic.Int32
	replace := func() {
		inner := lw.WatchFuncWithContext
		lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			opened.Add(1)
			return inner(ctx, o)
		}
	}
	if early {
		replace()
	}
	informer := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
	if !early {
		replace()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := run(ctx, informer)
	if !WaitForCacheSync(ctx.Done(), informer.HasSynced) || opened.Load() == 0 || len(informer.GetStore().List()) != 20 {
		t.Errorf("%d calls, %d pods", opened.Load(), len(informer.GetStore().List()))
	}
	cancel()
	<-done
}

// An informer of another kind than the resource's has no objects, and says why, as if the
// REST client had decoded them.
func TestClientReadsOfAnotherKind(t *testing.T) {
	_, config := serveTolerant(t)
	client, _ := coreClient(t, config, unchanged)
	informer := NewSharedIndexInformer(NewListWatchFromClient(client, "pods", "north", fields.Everything()), &corev1.Node{}, 0, Indexers{})
	failed := make(chan error, 100)
	if err := informer.SetWatchErrorHandler(func(_ *Reflector, err error) { failed <- err }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := run(ctx, informer)
	select {
	case <-failed:
	case <-time.After(20 * time.Second):
		t.Error("no error")
	}
	if got := informer.GetStore().List(); len(got) > 0 {
		t.Errorf("%d pods are nodes", len(got))
	}
	cancel()
	<-done
}

// A transform may write to the object that it is given, and what it returns is shared.
func TestClientReadsAreTransformed(t *testing.T) {
	_, config := serveTolerant(t)
	for _, controller := range []bool{false, true} {
		client, _ := coreClient(t, config, unchanged)
		lw := NewListWatchFromClient(client, "pods", "north", fields.Everything())
		transform := func(object any) (any, error) {
			object.(*corev1.Pod).Spec.Tolerations[0].Value += " indeed"
			return object, nil
		}
		var store Store
		var informer interface {
			RunWithContext(context.Context)
			HasSynced() bool
		}
		if controller {
			store, informer = NewInformerWithOptions(InformerOptions{ListerWatcher: lw, ObjectType: &corev1.Pod{}, Transform: transform})
		} else {
			shared := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
			must(shared.SetTransform(transform))
			store, informer = shared.GetStore(), shared
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		WaitForCacheSync(ctx.Done(), informer.HasSynced)
		tolerations := map[*corev1.Toleration]bool{}
		for _, object := range store.List() {
			held := object.(*corev1.Pod)
			if got := held.Spec.Tolerations[0].Value; got != "very indeed" {
				t.Errorf("%s: %q", held.Name, got)
			}
			tolerations[&held.Spec.Tolerations[0]] = true
		}
		if len(store.List()) != 20 || len(tolerations) > 5 {
			t.Errorf("%d pods with %d lists of tolerations", len(store.List()), len(tolerations))
		}
		cancel()
		<-done
	}
}

// Items of a list keep the kind that a server of custom resources writes into each, as with
// client-go, and a watch error handler is given the error of the API as it is.
func TestClientReadsDetails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
			{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}},{"kind":"Pod","metadata":{"name":"b","namespace":"n"}}]}`)
	}))
	defer server.Close()
	kinds := func(informerOver func(Getter) (SharedIndexInformer, func(WatchErrorHandler))) (seen []string) {
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		informer, onError := informerOver(client.CoreV1().RESTClient())
		failed := make(chan string, 100)
		onError(func(_ *Reflector, err error) { failed <- fmt.Sprintf("%T", err) })
		ctx, cancel := context.WithCancel(t.Context())
		done := run(ctx, informer)
		WaitForCacheSync(ctx.Done(), informer.HasSynced)
		for _, name := range []string{"n/a", "n/b"} {
			object, _, _ := informer.GetStore().GetByKey(name)
			if object == nil {
				seen = append(seen, name+" is missing")
				continue
			}
			seen = append(seen, fmt.Sprint(name, " ", object.(*corev1.Pod).TypeMeta))
		}
		for range 2 {
			seen = append(seen, <-failed) // of the stream of initial events, and of the watch
		}
		cancel()
		<-done
		return seen
	}
	stock := kinds(func(c Getter) (SharedIndexInformer, func(WatchErrorHandler)) {
		i := upstream.NewSharedIndexInformer(upstream.NewListWatchFromClient(c, "pods", "", fields.Everything()), &corev1.Pod{}, 0, Indexers{})
		return i, func(h WatchErrorHandler) { must(i.SetWatchErrorHandler(h)) }
	})
	ours := kinds(func(c Getter) (SharedIndexInformer, func(WatchErrorHandler)) {
		i := NewSharedIndexInformer(NewListWatchFromClient(c, "pods", "", fields.Everything()), &corev1.Pod{}, 0, Indexers{})
		if !readsWire(i) {
			t.Error("the informer calls the REST client's decoder")
		}
		return i, func(h WatchErrorHandler) { must(i.SetWatchErrorHandler(h)) }
	})
	if diff := gocmp.Diff(stock, ours); diff != "" {
		t.Errorf("client-go and ours differ (-client-go +ours):\n%s", diff)
	}
}

// A function that panics is reported, and the informer goes on, if utilruntime is configured so.
func TestClientReadsSurviveAPanic(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
	_, config := serveTolerant(t)
	client, _ := coreClient(t, config, unchanged)
	var calls atomic.Int32
	lw := NewFilteredListWatchFromClient(client, "pods", "north", func(*metav1.ListOptions) {
		if calls.Add(1) == 1 {
			panic("no options")
		}
	})
	informer := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	done := run(ctx, informer)
	if !WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetStore().List()) != 20 {
		t.Errorf("the informer has %d pods after a panic", len(informer.GetStore().List()))
	}
	cancel()
	<-done
}

// The fields of a REST client are where they are expected in this version of client-go. If
// they are not, all still works, but informers over NewListWatchFromClient cost more.
func TestSchemeOfARESTClient(t *testing.T) {
	client, err := rest.RESTClientFor(&rest.Config{Host: "http://lake", APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := schemeOf(client); got != scheme.Scheme {
		t.Errorf("the scheme is %p, want %p", got, scheme.Scheme)
	}
	if got := kindAt(client, &corev1.Pod{}); got != corev1.SchemeGroupVersion.WithKind("Pod") {
		t.Errorf("a pod is of kind %v", got)
	}
}
