package ctrlcache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
)

func rev2start(t *testing.T, make cache.NewCacheFunc, cfg *rest.Config, opts cache.Options) (cache.Cache, context.Context) {
	t.Helper()
	c, err := make(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("not synced")
	}
	return c, ctx
}

func richPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i), Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u", Controller: ptr.To(true)}}, Finalizers: []string{"x.y/z"}},
		Spec: corev1.PodSpec{ActiveDeadlineSeconds: ptr.To(int64(5)), NodeSelector: map[string]string{"q": "r"}, Containers: []corev1.Container{{
			Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
			Resources:      corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}},
		}}},
		Status: corev1.PodStatus{Phase: "Running", StartTime: &metav1.Time{Time: time.Unix(1700000000, 0)}},
	}
}

var crdKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}

func crd() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	_ = json.Unmarshal([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.org"},"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`), u)
	return u
}

func thing(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	_ = json.Unmarshal([]byte(`{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"namespace":"default","name":"`+name+`","annotations":{"k":"v"}},"spec":{"i":1,"f":1.5,"g":1.0,"big":9007199254740993,"neg":-3,"e":1e3,"n":null,"empty":{},"list":[1,"a",null,{"x":[]}],"s":"\u00e9\u2028<>&","b":true}}`), u)
	return u
}

// all forms read the same as theirs
func TestReview2SameValues(t *testing.T) {
	api, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	direct, err := client.New(api.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := direct.Create(t.Context(), richPod(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := direct.Create(t.Context(), crd()); err != nil {
		t.Fatal(err)
	}
	if err := direct.Create(t.Context(), thing("one")); err != nil {
		t.Fatal(err)
	}
	read := func(m cache.NewCacheFunc, opts cache.Options) map[string]any {
		seen := map[string]any{}
		c, ctx := rev2start(t, m, api.Config(), opts)
		for pass := range 3 {
			for _, gvk := range []schema.GroupVersionKind{podKind, crdKind, {Version: "v1", Kind: "Namespace"}} {
				u := &unstructured.UnstructuredList{}
				u.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
				m := emptyMetadatas(gvk)
				lists := []client.ObjectList{u, m}
				if gvk == podKind {
					lists = append(lists, &corev1.PodList{})
				}
				if pass == 1 {
					for i, j := 0, len(lists)-1; i < j; i, j = i+1, j-1 {
						lists[i], lists[j] = lists[j], lists[i]
					}
				}
				for _, l := range lists {
					if err := c.List(ctx, l); err != nil {
						t.Fatal(err)
					}
					items, _ := meta.ExtractList(l)
					for _, it := range items {
						o := it.(client.Object)
						seen[fmt.Sprintf("%d %T %v %s", pass, o, gvk, o.GetName())] = o
					}
				}
			}
			if pass == 0 && direct.Patch(ctx, richPod(1), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`))) != nil {
				t.Error("patch")
			}
		}
		return seen
	}
	for name, opts := range map[string]cache.Options{"": {}, "shared": {DefaultUnsafeDisableDeepCopy: ptr.To(true)}, "strip": {DefaultTransform: cache.TransformStripManagedFields()}} {
		theirs, ours := read(cache.New, opts), read(ctrlcache.NewCache, opts)
		if d := cmp.Diff(theirs, ours); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if len(ours) < 40 {
			t.Errorf("only %d", len(ours))
		}
	}
}

// identity with UnsafeDisableDeepCopy
func TestReview2Shared(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	if err := api.Put(richPod(1), richPod(2)); err != nil {
		t.Fatal(err)
	}
	for _, warm := range []bool{false, true} {
		c, ctx := rev2start(t, ctrlcache.NewCache, api.Config(), cache.Options{DefaultUnsafeDisableDeepCopy: ptr.To(true)})
		if warm {
			if err := c.List(ctx, &corev1.PodList{}); err != nil {
				t.Fatal(err)
			}
		}
		u := func() client.Object { u := &unstructured.Unstructured{}; u.SetGroupVersionKind(podKind); return u }
		m := func() client.Object { return emptyMetadata(podKind) }
		p := func() client.Object { return &corev1.Pod{} }
		key := client.ObjectKey{Namespace: "default", Name: "p1"}
		for i, f := range []func() client.Object{m, p, u, m} {
			a, b := f(), f()
			if err := c.Get(ctx, key, a); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(ctx, key, b); err != nil {
				t.Fatal(err)
			}
			pa, pb := reflect.ValueOf(a.GetLabels()).Pointer(), reflect.ValueOf(b.GetLabels()).Pointer()
			if ua, ok := a.(*unstructured.Unstructured); ok {
				pa, pb = reflect.ValueOf(ua.Object).Pointer(), reflect.ValueOf(b.(*unstructured.Unstructured).Object).Pointer()
			}
			if pa != pb {
				t.Errorf("%d %T not shared warm=%v", i, a, warm)
			}
		}
	}
}

// transforms that write deep
func TestReview2DeepTransform(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	for i := range 300 {
		if err := api.Put(richPod(i)); err != nil {
			t.Fatal(err)
		}
	}
	transform := func(o any) (any, error) {
		switch o := o.(type) {
		case *corev1.Pod:
			o.Spec.Containers[0].Env[0].Value = o.Name
			o.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1")
			o.Labels["name"] = o.Name
			o.OwnerReferences[0].Name = o.Name
			*o.Spec.ActiveDeadlineSeconds++
		case *unstructured.Unstructured:
			cs := o.Object["spec"].(map[string]any)["containers"].([]any)
			cs[0].(map[string]any)["env"].([]any)[0].(map[string]any)["value"] = o.GetName()
		case *metav1.PartialObjectMetadata:
			o.OwnerReferences[0].Name = o.Name
			o.Annotations["a"] = o.Name
		}
		return o, nil
	}
	c, ctx := rev2start(t, ctrlcache.NewCache, api.Config(), cache.Options{DefaultTransform: transform})
	check := func() {
		var pods corev1.PodList
		if err := c.List(ctx, &pods); err != nil {
			t.Fatal(err)
		}
		for _, p := range pods.Items {
			if p.Spec.Containers[0].Env[0].Value != p.Name || p.Labels["name"] != p.Name || p.OwnerReferences[0].Name != p.Name || *p.Spec.ActiveDeadlineSeconds != 6 {
				t.Fatalf("%s %v", p.Name, p)
			}
		}
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
		if err := c.List(ctx, u); err != nil {
			t.Fatal(err)
		}
		for _, o := range u.Items {
			cs := o.Object["spec"].(map[string]any)["containers"].([]any)
			if cs[0].(map[string]any)["env"].([]any)[0].(map[string]any)["value"] != o.GetName() {
				t.Fatal(o)
			}
		}
		m := emptyMetadatas(podKind)
		if err := c.List(ctx, m); err != nil {
			t.Fatal(err)
		}
		for _, o := range m.Items {
			if o.OwnerReferences[0].Name != o.Name || o.Annotations["a"] != o.Name || o.Labels["name"] != "" {
				t.Fatal(o)
			}
		}
	}
	check()
	for i := range 50 {
		if err := api.Put(richPod(i)); err != nil {
			t.Fatal(err)
		}
	}
	check()
}

// the server is down at first, then there, then gone and back
func TestReview2ServerComesLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c, err := ctrlcache.NewCache(&rest.Config{Host: "http://" + address}, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(ctx) })
	defer running.Wait()
	defer cancel()
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("sync of nothing")
	}
	if err := c.List(ctx, &corev1.PodList{}); err == nil {
		t.Error("no server")
	} else {
		t.Log(err)
	}
	api, err := apiserver.Start(apiserver.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	_ = api.Put(richPod(1))
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil || len(pods.Items) != 1 {
		t.Fatal(err, len(pods.Items))
	}
	api.Close()
	// reads go on meanwhile
	if err := c.List(ctx, &pods); err != nil || len(pods.Items) != 1 {
		t.Fatal(err, len(pods.Items))
	}
	if api, err = apiserver.Start(apiserver.Options{Address: address}); err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	_ = api.Put(richPod(2), richPod(3), richPod(4))
	begun := time.Now()
	for len(pods.Items) != 3 {
		if ctx.Err() != nil {
			t.Fatal("never came back")
		}
		time.Sleep(5 * time.Millisecond)
		if err := c.List(ctx, &pods); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("back after", time.Since(begun))
}

func TestReview2CRDComesLater(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	c, ctx := rev2start(t, ctrlcache.NewCache, api.Config(), cache.Options{})
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(crdKind)
	err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "one"}, u)
	if !meta.IsNoMatchError(err) {
		t.Errorf("%v", err)
	}
	if err := api.Put(crd(), thing("one")); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "one"}, u); err != nil {
		t.Fatal(err)
	}
	// gone and back again
	if err := api.Delete(crd()); err != nil {
		t.Fatal(err)
	}
	for c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "one"}, u) == nil {
		if ctx.Err() != nil {
			t.Fatal("still there")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := api.Put(crd(), thing("two")); err != nil {
		t.Fatal(err)
	}
	for c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "two"}, u) != nil {
		if ctx.Err() != nil {
			t.Fatal("never back")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// index funcs that read the cache
func TestReview2IndexReadsCache(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	c, ctx := rev2start(t, ctrlcache.NewCache, api.Config(), cache.Options{})
	cl, err := ctrlcache.NewClient(api.Config(), client.Options{Cache: &client.CacheOptions{Reader: c, EnableReadYourWritesConsistency: ptr.To(true)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.IndexField(ctx, &corev1.Pod{}, "byns", func(o client.Object) []string {
		time.Sleep(time.Millisecond)
		var cms corev1.ConfigMapList
		if err := cl.List(ctx, &cms); err != nil {
			t.Error(err)
		}
		return []string{fmt.Sprint(o.GetName())}
	}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 25 {
				p := richPod(0)
				p.Finalizers = nil
				p.Name = fmt.Sprint("w", w, "-", i)
				if err := cl.Create(ctx, p); err != nil {
					t.Error(err)
					return
				}
				if err := cl.Get(ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}); err != nil {
					t.Error(err)
					return
				}
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.Name}}
				if err := cl.Create(ctx, cm); err != nil {
					t.Error(err)
				}
				if err := cl.List(ctx, &corev1.PodList{}, client.MatchingFields{"byns": p.Name}); err != nil {
					t.Error(err)
					return
				}
				if i%3 == 0 {
					if err := cl.Delete(ctx, p); err != nil {
						t.Error(err)
					}
					if err := cl.Get(ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}); !apierrors.IsNotFound(err) {
						t.Error(err)
					}
				}
				if w == 0 {
					_, _ = c.GetInformer(ctx, &corev1.Secret{})
					_ = c.RemoveInformer(ctx, &corev1.Secret{})
				}
			}
		})
	}
	all.Wait()
}

type rev2counter struct{ client.Client }

func (r rev2counter) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	var d appsv1.Deployment
	if err := r.Get(ctx, q.NamespacedName, &d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var owned corev1.ConfigMapList
	if err := r.List(ctx, &owned, client.InNamespace(q.Namespace), client.MatchingFields{"owner": q.Name}); err != nil {
		return ctrl.Result{}, err
	}
	if len(owned.Items) > 3 {
		return ctrl.Result{}, fmt.Errorf("created too many: %d", len(owned.Items))
	}
	for i := len(owned.Items); i < 3; i++ {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, GenerateName: q.Name + "-"}}
		if err := ctrl.SetControllerReference(&d, cm, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, cm); err != nil {
			return ctrl.Result{}, err
		}
	}
	if d.Status.Replicas != 3 {
		d.Status.Replicas = 3
		return ctrl.Result{}, r.Status().Update(ctx, &d)
	}
	return ctrl.Result{}, nil
}

type rev2meta struct {
	client.Client
	mu   *sync.Mutex
	seen map[string]bool
}

func (r rev2meta) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	m := emptyMetadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := r.Get(ctx, q.NamespacedName, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if m.Kind != "ConfigMap" {
		return ctrl.Result{}, fmt.Errorf("kind %q", m.Kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[m.Name] = true
	return ctrl.Result{}, nil
}

func TestReview2Manager(t *testing.T) {
	for _, namespaces := range []map[string]cache.Config{nil, {"default": {}, "kube-system": {}}} {
		for name, newClient := range clients {
			t.Run(fmt.Sprint(name, len(namespaces)), func(t *testing.T) {
				api := apiserver.New(apiserver.Options{})
				defer api.Close()
				mgr, err := ctrl.NewManager(api.Config(), ctrl.Options{
					Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 4},
					NewCache: ctrlcache.NewCache, NewClient: newClient, Cache: cache.Options{DefaultNamespaces: namespaces},
					Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "owner", func(o client.Object) []string {
					if c := metav1.GetControllerOf(o); c != nil {
						return []string{c.Name}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if err := ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
					Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}).Named("a").Complete(rev2counter{mgr.GetClient()}); err != nil {
					t.Fatal(err)
				}
				m := rev2meta{mgr.GetClient(), &sync.Mutex{}, map[string]bool{}}
				if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}, builder.OnlyMetadata).Named("b").Complete(m); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- mgr.Start(ctx) }()
				direct, _ := client.New(api.Config(), client.Options{})
				for i := range 10 {
					for _, ns := range []string{"default", "kube-system"} {
						if err := direct.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("d", i)}}); err != nil {
							t.Fatal(err)
						}
					}
				}
				begun := time.Now()
				for {
					var ds appsv1.DeploymentList
					if err := direct.List(ctx, &ds); err != nil {
						t.Fatal(err)
					}
					n := 0
					for _, d := range ds.Items {
						if d.Status.Replicas == 3 {
							n++
						}
					}
					m.mu.Lock()
					seen := len(m.seen)
					m.mu.Unlock()
					if n == 20 && seen >= 60 {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Log(time.Since(begun))
				var cms corev1.ConfigMapList
				if err := direct.List(ctx, &cms); err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, c := range cms.Items {
					if strings.HasPrefix(c.Name, "d") {
						n++
					}
				}
				if n != 60 {
					t.Errorf("%d config maps", n)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// multi-namespace, cluster-scoped, indexes of unstructured, limits
func TestReview2Namespaces(t *testing.T) {
	api := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer api.Close()
	_ = api.Put(crd())
	for i := range 9 {
		p := richPod(i)
		p.Namespace = []string{"a", "b", "c"}[i%3]
		o := thing(fmt.Sprint("t", i))
		o.SetNamespace(p.Namespace)
		if err := api.Put(p, o, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"odd": fmt.Sprint(i % 2)}}}); err != nil {
			t.Fatal(err)
		}
	}
	options := map[string]func() cache.Options{
		"two": func() cache.Options {
			return cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}}
		},
		"all but": func() cache.Options {
			return cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {FieldSelector: fields.OneTermEqualSelector("metadata.name", "p0")}, cache.AllNamespaces: {}}}
		},
	}
	for name, o := range options {
		show := func(m cache.NewCacheFunc) (seen []string) {
			c, ctx := rev2start(t, m, api.Config(), o())
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(crdKind)
			for _, x := range []client.Object{u, &corev1.Pod{}, &corev1.Node{}, emptyMetadata(podKind)} {
				if err := c.IndexField(ctx, x, "idx", func(o client.Object) []string { return []string{o.GetName()[1:], "x"} }); err != nil {
					t.Fatal(err)
				}
			}
			ul := &unstructured.UnstructuredList{}
			ul.SetGroupVersionKind(crdKind.GroupVersion().WithKind("ThingList"))
			for _, l := range []client.ObjectList{ul, &corev1.PodList{}, &corev1.NodeList{}, emptyMetadatas(podKind), &corev1.NamespaceList{}} {
				for i, opts := range [][]client.ListOption{{}, {client.InNamespace("a")}, {client.InNamespace("c")}, {client.MatchingFields{"idx": "x"}}, {client.MatchingFields{"idx": "4"}}, {client.InNamespace("b"), client.MatchingFields{"idx": "x"}}, {client.Limit(2)}, {client.Limit(100)}, {client.MatchingLabels{"odd": "1"}}, {client.Continue("x")}} {
					if _, ok := l.(*corev1.NamespaceList); ok && (i > 2 && i < 6) {
						continue
					}
					err := c.List(ctx, l, opts...)
					x := &stage{TB: t}
					keys := keysOf(x, l)
					if i == 6 {
						keys = []string{fmt.Sprint(len(keys))}
					}
					seen = append(seen, fmt.Sprintf("%T %d %v %v %s", l, i, err != nil, keys, l.GetContinue()))
					if err != nil {
						_ = meta.SetList(l, nil)
					}
				}
			}
			for _, ns := range []string{"a", "b", "c", ""} {
				seen = append(seen, ns+classify(c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "n1"}, &corev1.Node{})))
				seen = append(seen, ns+classify(c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p1"}, &corev1.Pod{})))
			}
			return seen
		}
		if d := cmp.Diff(show(cache.New), show(ctrlcache.NewCache)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
