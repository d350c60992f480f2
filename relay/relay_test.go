package relay

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn"
)

func tarnVersion(text string) tarn.Version { return tarn.Version(text) }

// Options that cannot hold are refused, each by its name: a negative DrainTime would end the
// process when the relay stops.
func TestBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"at least one resource": {Config: &rest.Config{}},
		"LogBytes":              {LogBytes: -1},
		"DrainTime":             {DrainTime: -time.Second},
		"CallerWatches":         {CallerWatches: -1},
		"WriteTimeout":          {WriteTimeout: -1},
	} {
		if o.Config == nil {
			o.Config, o.Resources = &rest.Config{}, []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("pods")}
		}
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// An informer of client-go sees through a relay what it sees directly, and the origin is
// not asked for it.
func TestInformer(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 50 {
		r.put(pod(fmt.Sprint("p", i), fmt.Sprint(i%3)))
	}
	r.settle()
	direct, err := kubernetes.NewForConfig(r.origin.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.requests()
	stores := map[string]cache.Store{}
	for name, client := range map[string]kubernetes.Interface{"direct": direct, "relay": r.client()} {
		factory := informers.NewSharedInformerFactory(client, 0)
		informer := factory.Core().V1().Pods().Informer()
		stores[name] = informer.GetStore()
		factory.Start(ctx.Done())
		defer factory.Shutdown()
		factory.WaitForCacheSync(ctx.Done())
	}
	defer cancel()
	for i := range 20 {
		r.put(pod(fmt.Sprint("p", i), "changed"), pod(fmt.Sprint("new", i), "x"))
		if err := r.origin.Delete(pod(fmt.Sprint("p", 49-i), "")); err != nil {
			t.Fatal(err)
		}
	}
	same := func() string {
		for name, store := range stores {
			if _, last, _ := store.GetByKey("default/new19"); !last {
				return "the last change is not at " + name
			}
			if _, left, _ := store.GetByKey("default/p30"); left {
				return "the last delete is not at " + name
			}
		}
		return cmp.Diff(objects(stores["direct"]), objects(stores["relay"]))
	}
	for deadline := time.Now().Add(10 * time.Second); same() != "" && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if diff := same(); diff != "" {
		t.Error(diff)
	}
	for _, request := range r.requests() {
		if !strings.Contains(request, "limit=1") && !strings.Contains(request, "timeoutSeconds=3&") {
			t.Errorf("the origin was asked: %s", request)
		}
	}
}

func objects(store cache.Store) map[string]any {
	all := map[string]any{}
	for _, o := range store.List() {
		all[o.(*corev1.Pod).Name] = o
	}
	return all
}

// Answers are those of the origin, byte by byte, in every format.
func TestSameAnswers(t *testing.T) {
	r := newRig(t, Options{})
	r.origin.Compact()
	first := r.origin.Version()
	for i := range 7 {
		r.put(pod(fmt.Sprint("p", i), fmt.Sprint(i%3)))
	}
	r.put(pod("p0", "1"), pod("p1", "2"))
	if err := r.origin.Delete(pod("p3", "")); err != nil {
		t.Fatal(err)
	}
	r.settle()
	version := r.origin.Version()
	accepts := []string{
		"application/json", "application/vnd.kubernetes.protobuf", "application/yaml",
		"application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "text/html",
	}
	for _, path := range []string{
		"/api/v1/pods?resourceVersion=0", "/api/v1/namespaces/default/pods?resourceVersion=0",
		"/api/v1/pods?resourceVersion=" + version, "/api/v1/pods?resourceVersion=" + version + "&resourceVersionMatch=Exact",
		"/api/v1/pods?resourceVersion=0&labelSelector=l%3D1", "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dnode-2",
		"/api/v1/pods?resourceVersion=" + version + "&limit=3",
		"/api/v1/namespaces/default/pods/p1?resourceVersion=0", "/api/v1/namespaces/default/pods/none?resourceVersion=0",
		"/api/v1/pods?resourceVersion=x", "/api/v1/pods?resourceVersion=0&fieldSelector=spec.color%3Dred", "/api/v1/pods?labelSelector=a%20b",
		"/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact", "/api/v1/pods?continue=foreign",
		"/api/v1/pods?resourceVersion=" + first + "&resourceVersionMatch=Exact",
		"/api/v1/pods?watch=1&timeoutSeconds=1&labelSelector=l%3D1&resourceVersion=" + first,
		"/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&resourceVersion=" + first,
	} {
		for _, accept := range accepts {
			if strings.Contains(path, "watch") && accept != accepts[0] && accept != accepts[1] {
				continue // each takes a second
			}
			code, body := r.read(path, "Accept", accept)
			wantCode, want := directly(t, r, path, accept)
			if strings.Contains(accept, "as=Table") && body != want {
				// A table shows ages, and a second may have begun between the two answers.
				code, body = r.read(path, "Accept", accept)
			}
			if code != wantCode || body != want {
				t.Errorf("%s as %s:\n%d %.300q, want\n%d %.300q", path, accept, code, body, wantCode, want)
			}
		}
	}
}

func directly(t *testing.T, r *rig, path, accept string) (int, string) {
	t.Helper()
	through := &rig{t: t, url: r.relay.options.Config.Host}
	return through.read(path, "Accept", accept)
}

// Pages of a list show one version, and a page can be read from the origin when the one
// before came from the relay.
func TestPages(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 10 {
		r.put(pod(fmt.Sprint("p", i), "x"))
	}
	r.settle()
	direct, err := kubernetes.NewForConfig(r.origin.Config())
	if err != nil {
		t.Fatal(err)
	}
	clients := []kubernetes.Interface{r.client(), direct}
	var names []string
	options := metav1.ListOptions{Limit: 3, ResourceVersion: r.origin.Version(), ResourceVersionMatch: metav1.ResourceVersionMatchExact, LabelSelector: "l=x"}
	for page := 0; ; page++ {
		list, err := clients[page%2].CoreV1().Pods("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		r.put(pod(fmt.Sprint("between", page), "x"))
		if list.Continue == "" {
			break
		}
		options = metav1.ListOptions{Limit: 3, Continue: list.Continue, LabelSelector: "l=x"}
	}
	if want := []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
}

// A list without a version shows everything that was written before, from the copy if it
// can be as new, else from the origin.
func TestConsistentList(t *testing.T) {
	r := newRig(t, Options{})
	client := r.client()
	for i := range 20 {
		r.put(pod(fmt.Sprint("p", i), "x"))
		if i%2 == 0 {
			r.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"i": fmt.Sprint(i)}}})
		}
		list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != i+1 {
			t.Fatalf("%d pods of %d, %v", len(list.Items), i+1, err)
		}
	}
	stats := r.relay.Stats()[0]
	if stats.Forwarded == 0 || stats.Forwarded == 20 || stats.Probes != 20 {
		t.Errorf("%d forwarded, %d probes", stats.Forwarded, stats.Probes)
	}
}

// Writes, other resources, discovery and gets without a version are the origin's.
func TestForwarded(t *testing.T) {
	r := newRig(t, Options{})
	client := r.client()
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("a", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.Discovery().ServerPreferredResources(); err != nil {
		t.Error(err)
	}
	if code, body := r.read("/api/v1/pods?resourceVersion=0", "Impersonate-User", "root"); code != http.StatusOK || !strings.Contains(body, `"a"`) {
		t.Errorf("%d %s", code, body)
	}
	if !slices.Contains(r.requests(), "GET /api/v1/pods?resourceVersion=0") {
		t.Error("an impersonating caller was answered from the copy")
	}
}

// A list that began at the origin, at a version that the copy has not received because
// only other resources have changed, is continued by the relay.
func TestPagesAheadOfTheCopy(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 4 {
		r.put(pod(fmt.Sprint("p", i), "x"))
	}
	r.settle()
	r.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	direct, err := kubernetes.NewForConfig(r.origin.Config())
	if err != nil {
		t.Fatal(err)
	}
	first, err := direct.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	last, err := r.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 3, Continue: first.Continue})
	if err != nil || len(last.Items) != int(*first.RemainingItemCount) || last.ResourceVersion != first.ResourceVersion {
		t.Errorf("the second page has %d pods at %s, the first is of %s: %v", len(last.Items), last.ResourceVersion, first.ResourceVersion, err)
	}
	code, body := r.read("/api/v1/pods?resourceVersion=" + r.origin.Version())
	if code != http.StatusOK {
		t.Errorf("a list at the version: %d %s", code, body)
	}
}

// A version of the future is waited for, and then refused with a hint to come again.
func TestFutureVersion(t *testing.T) {
	r := newRig(t, Options{})
	r.copy(pods, "").state.maxWait = 50 * time.Millisecond
	r.put(pod("a", "1"))
	r.settle()
	code, body := r.read("/api/v1/pods?resourceVersion=999999")
	if code != http.StatusGatewayTimeout || !strings.Contains(body, "Too large resource version: 999999") || !strings.Contains(body, "retryAfterSeconds") {
		t.Errorf("%d %s", code, body)
	}
	r.copy(pods, "").state.maxWait = 10 * time.Second
	next := versionOf(tarnVersion(r.origin.Version())) + 1
	answered := make(chan string)
	go func() {
		_, body := r.read(fmt.Sprint("/api/v1/pods?resourceVersion=", next))
		answered <- body
	}()
	r.put(pod("b", "1"))
	if body := <-answered; !strings.Contains(body, `"name":"b"`) {
		t.Error(body)
	}
}

// Relays chain, and one that would be its own origin says so.
func TestChainAndLoop(t *testing.T) {
	r := newRig(t, Options{})
	r.put(pod("a", "1"))
	second := &rig{t: t, origin: r.origin}
	second.start(r.url, Options{})
	second.settle()
	_, through := second.read("/api/v1/pods?resourceVersion=0")
	_, once := r.read("/api/v1/pods?resourceVersion=0")
	if through != once || !strings.Contains(through, `"name":"a"`) {
		t.Errorf("through two relays:\n%s\nthrough one:\n%s", through, once)
	}
	if code, body := r.read("/api/v1/nodes", hopHeader, "x,"+r.relay.id); code != http.StatusLoopDetected {
		t.Errorf("%d %s", code, body)
	}
}

// Ready and alive.
func TestReadiness(t *testing.T) {
	r := newRig(t, Options{})
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		if code, body := r.read(path); code != http.StatusOK || body != "ok" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	r.relay.drain()
	if code, body := r.read("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "stopped") {
		t.Errorf("%d %s", code, body)
	}
}
