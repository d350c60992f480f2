package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cluster is a server of pods, with just what Reflect needs.
type cluster struct {
	*server
	t testing.TB

	mu      sync.Mutex
	version int
	pods    map[string]*corev1.Pod
	// log is every change, and changed is closed at the next.
	log     []change
	changed chan struct{}
	// served says whether pods are served; noWatchList refuses initial events.
	served, noWatchList bool
}

type change struct {
	kind    string
	pod     *corev1.Pod
	version int
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, version: 10, pods: map[string]*corev1.Pod{}, changed: make(chan struct{}), served: true}
	c.server = serve(t, false, c.handle)
	return c
}

func (c *cluster) put(namespace, name, image string) *corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, ResourceVersion: fmt.Sprint(c.version),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
	kind, key := "MODIFIED", namespace+"/"+name
	if c.pods[key] == nil {
		kind = "ADDED"
	}
	c.pods[key] = pod
	c.tell(change{kind, pod, c.version})
	return pod
}

func (c *cluster) tell(ch change) {
	c.log = append(c.log, ch)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *cluster) handle(w http.ResponseWriter, r *http.Request) {
	contentType := jsonType
	if wants(r, protobufType) {
		contentType = protobufType
	}
	c.mu.Lock()
	served := c.served
	c.mu.Unlock()
	namespace := ""
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	if rest, ok := strings.CutPrefix(path, "/namespaces/"); ok {
		namespace, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	switch {
	case path == "":
		list := metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "nodes", Kind: "Node"}, {Name: "pods/log", Kind: "Pod"}}}
		if served {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: "pods", Kind: "Pod", Namespaced: true})
		}
		w.Header().Set("Content-Type", jsonType)
		_ = json.NewEncoder(w).Encode(list)
	case path != "/pods" || !served:
		http.NotFound(w, r)
	case r.URL.Query().Get("watch") == "":
		c.mu.Lock()
		var all []*corev1.Pod
		for _, p := range c.pods {
			if namespace == "" || p.Namespace == namespace {
				all = append(all, p)
			}
		}
		version := fmt.Sprint(c.version)
		c.mu.Unlock()
		answer(w, contentType, podList(c.t, contentType, all, version))
	default:
		c.watch(w, r, contentType, namespace)
	}
}

func (c *cluster) watch(w http.ResponseWriter, r *http.Request, contentType, namespace string) {
	initial := r.URL.Query().Get("sendInitialEvents") != ""
	c.mu.Lock()
	if initial && c.noWatchList {
		c.mu.Unlock()
		http.Error(w, "no such thing", http.StatusBadRequest)
		return
	}
	var out []byte
	add := func(kind string, p *corev1.Pod) {
		if namespace == "" || p.Namespace == namespace {
			out = append(out, event(c.t, contentType, kind, p)...)
		}
	}
	next := len(c.log)
	if initial {
		for _, p := range c.pods {
			add("ADDED", p)
		}
		out = append(out, bookmark(c.t, contentType, fmt.Sprint(c.version), true)...)
	} else {
		for next > 0 && fmt.Sprint(c.log[next-1].version) > r.URL.Query().Get("resourceVersion") {
			next--
		}
	}
	c.mu.Unlock()
	w.Header().Set("Content-Type", contentType)
	for {
		c.mu.Lock()
		for ; next < len(c.log); next++ {
			add(c.log[next].kind, c.log[next].pod)
		}
		changed := c.changed
		c.mu.Unlock()
		_, _ = w.Write(out)
		w.(http.Flusher).Flush()
		out = out[:0]
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
