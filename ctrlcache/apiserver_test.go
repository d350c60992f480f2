package ctrlcache_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// apiServer is as much of an API server as a cache sees: lists, watches, streamed
// lists, metadata, writes. It speaks JSON. Watches of a namespace can be held
// back, which a real server does by chance only.
type apiServer struct {
	*httptest.Server
	mu       sync.Mutex
	version  int64
	objects  map[string]*unstructured.Unstructured // by resource/namespace/name
	events   []change
	held     map[string]bool // by namespace
	changed  chan struct{}   // closed and replaced at every change
	requests []string
	open     atomic.Int32 // watches
	// refuse, if set, answers a request instead.
	refuse func(*http.Request) (code int, message string)
	// dropped names fields of what is sent, and of its metadata, that the server ignores.
	dropped []string
	// warn, if set, says what a request is warned of.
	warn func(*http.Request) string
}

type change struct {
	kind     string
	resource string
	version  int64
	object   *unstructured.Unstructured
}

var resources = map[string]schema.GroupVersionKind{
	"pods":       {Version: "v1", Kind: "Pod"},
	"configmaps": {Version: "v1", Kind: "ConfigMap"},
	"nodes":      {Version: "v1", Kind: "Node"},
	"lakes":      {Group: "water.example.com", Version: "v1", Kind: "Lake"},
}

func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for resource, gvk := range resources {
		scope := meta.RESTScopeNamespace
		if resource == "nodes" {
			scope = meta.RESTScopeRoot
		}
		mapper.AddSpecific(gvk, gvk.GroupVersion().WithResource(resource), gvk.GroupVersion().WithResource(resource), scope)
		mapper.Add(gvk.GroupVersion().WithKind(gvk.Kind+"List"), scope) // as discovery does
	}
	return mapper
}

func newAPIServer(t testing.TB) *apiServer {
	s := startAPIServer()
	t.Cleanup(s.Close)
	return s
}

func startAPIServer() *apiServer {
	s := &apiServer{version: 100, objects: map[string]*unstructured.Unstructured{}, held: map[string]bool{}, changed: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

func (s *apiServer) config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

// target is what a path names.
type target struct{ resource, namespace, name, sub string }

func parse(path string) (target, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return target{}, false
	}
	var t target
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "", "")
	t.resource, t.name, t.sub = parts[0], parts[1], parts[2]
	_, ok := resources[t.resource]
	return t, ok
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	t, ok := parse(r.URL.Path)
	if !ok {
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, describe(r, t))
	refuse := s.refuse
	if s.warn != nil {
		if text := s.warn(r); text != "" {
			w.Header().Set("Warning", text)
		}
	}
	s.mu.Unlock()
	if refuse != nil {
		if code, message := refuse(r); code != 0 {
			fail(w, code, "", message)
			return
		}
	}
	switch {
	case r.Method != http.MethodGet:
		s.write(w, r, t)
	case t.name != "":
		s.get(w, r, t)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, t)
	default:
		s.list(w, r, t)
	}
}

// describe is a request as the tests compare it.
func describe(r *http.Request, t target) string {
	verb, q := r.Method, r.URL.Query()
	if verb == http.MethodGet {
		verb = "list"
		if q.Get("watch") != "" {
			verb = "watch"
		}
		if t.name != "" {
			verb = "get"
		}
	}
	line := []string{verb, t.resource}
	if t.namespace != "" {
		line = append(line, "in="+t.namespace)
	}
	for _, name := range []string{"labelSelector", "fieldSelector", "allowWatchBookmarks"} {
		if value := q.Get(name); value != "" {
			line = append(line, name+":"+value)
		}
	}
	if wantsMetadata(r) {
		line = append(line, "metadata")
	}
	return strings.Join(line, " ")
}

func wantsMetadata(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// asked returns the distinct requests so far that have a prefix, sorted.
func (s *apiServer) asked(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, line := range s.requests {
		if strings.HasPrefix(line, prefix) {
			found = append(found, line)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func fail(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
	})
}

// chosen returns the objects of a request.
func chosen(r *http.Request, t target) (func(*unstructured.Unstructured) bool, error) {
	label, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	field, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(o *unstructured.Unstructured) bool {
		node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
		known := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace(), "spec.nodeName": node}
		return (t.namespace == "" || o.GetNamespace() == t.namespace) && label.Matches(labels.Set(o.GetLabels())) && field.Matches(known)
	}, nil
}

// shown is an object in the requested form.
func shown(r *http.Request, o *unstructured.Unstructured) map[string]any {
	if !wantsMetadata(r) {
		return o.Object
	}
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.Object["metadata"]}
}

func (s *apiServer) get(w http.ResponseWriter, r *http.Request, t target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[t.key()]
	if !ok {
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", t.resource, t.name))
		return
	}
	answer(w, shown(r, o))
}

func (t target) key() string { return t.resource + "/" + t.namespace + "/" + t.name }

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, t target) {
	match, err := chosen(r, t)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for _, o := range s.of(t.resource) {
		if match(o) {
			items = append(items, shown(r, o))
		}
	}
	gvk := resources[t.resource]
	kind, apiVersion := gvk.Kind+"List", gvk.GroupVersion().String()
	if wantsMetadata(r) {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	answer(w, map[string]any{"kind": kind, "apiVersion": apiVersion, "items": items, "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}})
}

// of returns the objects of a resource by key. The lock is held.
func (s *apiServer) of(resource string) (found []*unstructured.Unstructured) {
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, resource+"/") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		found = append(found, s.objects[key])
	}
	return found
}
