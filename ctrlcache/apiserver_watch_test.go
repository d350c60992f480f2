package ctrlcache_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, t target) {
	match, err := chosen(r, t)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	q := r.URL.Query()
	from, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	w.Header().Set("Content-Type", "application/json")
	send := func(kind string, object any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
	}
	if q.Get("sendInitialEvents") == "true" {
		s.mu.Lock()
		from = s.version
		for _, o := range s.of(t.resource) {
			if match(o) {
				send("ADDED", shown(r, o))
			}
		}
		s.mu.Unlock()
		send("BOOKMARK", bookmark(r, t, from, true))
	}
	w.(http.Flusher).Flush()
	s.open.Add(1)
	defer s.open.Add(-1)
	for {
		s.mu.Lock()
		changed := s.changed
		for _, c := range s.events {
			if s.held[t.namespace] {
				break
			}
			if c.version <= from || c.resource != t.resource {
				continue
			}
			from = c.version
			switch {
			case c.kind == "BOOKMARK":
				if q.Get("allowWatchBookmarks") != "" {
					send(c.kind, bookmark(r, t, c.version, false))
				}
			case match(c.object):
				send(c.kind, shown(r, c.object))
			}
		}
		s.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func bookmark(r *http.Request, t target, version int64, end bool) map[string]any {
	gvk := resources[t.resource]
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(gvk)
	o.SetResourceVersion(fmt.Sprint(version))
	if end {
		o.SetAnnotations(map[string]string{"k8s.io/initial-events-end": "true"})
	}
	return shown(r, o)
}

// note records a change and lets watches see it. The lock is held.
func (s *apiServer) note(kind, resource string, o *unstructured.Unstructured) {
	s.events = append(s.events, change{kind, resource, s.version, o})
	s.wake()
}

func (s *apiServer) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hold stops all events of a namespace's watches; release ends that.
func (s *apiServer) hold(namespace string)    { s.setHeld(namespace, true) }
func (s *apiServer) release(namespace string) { s.setHeld(namespace, false) }

func (s *apiServer) setHeld(namespace string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[namespace] = on
	s.wake()
}

// mark sends a bookmark to all watches of a resource.
func (s *apiServer) mark(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.note("BOOKMARK", resource, nil)
}

// put stores an object as if somebody else had written it, and returns its
// version.
func (s *apiServer) put(resource string, object map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &unstructured.Unstructured{Object: object}
	o.SetGroupVersionKind(resources[resource])
	key := target{resource: resource, namespace: o.GetNamespace(), name: o.GetName()}.key()
	old, existed := s.objects[key]
	if existed {
		o.SetUID(old.GetUID())
	}
	return s.store(resource, key, o, existed).GetResourceVersion()
}

// store writes an object at a new version. The lock is held.
func (s *apiServer) store(resource, key string, o *unstructured.Unstructured, existed bool) *unstructured.Unstructured {
	s.version++
	o.SetResourceVersion(fmt.Sprint(s.version))
	kind := "MODIFIED"
	if !existed {
		kind = "ADDED"
		o.SetUID(types.UID(uuid.NewUUID()))
	}
	s.objects[key] = o
	s.note(kind, resource, o)
	return o
}

// remove removes an object, and sends the event with the version of the deletion.
func (s *apiServer) remove(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := target{resource: resource, namespace: namespace, name: name}.key()
	s.drop(resource, key)
}

func (s *apiServer) drop(resource, key string) {
	o := s.objects[key].DeepCopy()
	delete(s.objects, key)
	s.version++
	o.SetResourceVersion(fmt.Sprint(s.version))
	s.note("DELETED", resource, o)
}

func (s *apiServer) write(w http.ResponseWriter, r *http.Request, t target) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	body := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &body); err != nil {
			fail(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", err.Error())
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	about, _ := body["metadata"].(map[string]any)
	for _, name := range s.dropped {
		delete(body, name)
		delete(about, name)
	}
	sent := &unstructured.Unstructured{Object: body}
	if r.Method == http.MethodPost {
		if sent.GetName() == "" {
			sent.SetName(sent.GetGenerateName() + fmt.Sprint(s.version))
		}
		t.name = sent.GetName()
		sent.SetNamespace(t.namespace)
	}
	old, existed := s.objects[t.key()]
	switch {
	case r.Method == http.MethodDelete && t.name == "":
		for _, o := range s.of(t.resource) {
			if match, _ := chosen(r, t); match(o) {
				s.drop(t.resource, target{resource: t.resource, namespace: o.GetNamespace(), name: o.GetName()}.key())
			}
		}
		answer(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	case r.Method == http.MethodPost && existed:
		fail(w, http.StatusConflict, "AlreadyExists", t.name+" already exists")
	case r.Method != http.MethodPost && !existed:
		fail(w, http.StatusNotFound, "NotFound", t.name+" not found")
	case r.Method == http.MethodDelete && len(old.GetFinalizers()) > 0:
		leaving := old.DeepCopy()
		_ = unstructured.SetNestedField(leaving.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
		_ = unstructured.SetNestedField(leaving.Object, int64(0), "metadata", "deletionGracePeriodSeconds")
		answer(w, s.store(t.resource, t.key(), leaving, true).Object)
	case r.Method == http.MethodDelete:
		s.drop(t.resource, t.key())
		answer(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success", "details": map[string]any{"name": t.name, "uid": string(old.GetUID())}})
	case r.Method == http.MethodPatch:
		merged := old.DeepCopy()
		merge(merged.Object, body)
		merged.SetNamespace(t.namespace)
		s.replace(w, r, t, old, merged)
	default:
		sent.SetGroupVersionKind(resources[t.resource])
		if existed {
			sent.SetUID(old.GetUID())
			s.replace(w, r, t, old, sent)
			return
		}
		answer(w, s.store(t.resource, t.key(), sent, false).Object)
	}
}

// replace stores a new state. An object that is being deleted and has no finalizers left is
// removed; the answer, as the real server's, is the new state with the version of the old one.
func (s *apiServer) replace(w http.ResponseWriter, r *http.Request, t target, old, o *unstructured.Unstructured) {
	gone := old.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
	switch {
	case r.URL.Query().Get("dryRun") != "" || gone:
		if gone && r.URL.Query().Get("dryRun") == "" {
			s.drop(t.resource, t.key())
		}
		o.SetResourceVersion(old.GetResourceVersion())
		answer(w, o.Object)
	case t.sub == "scale":
		scale := &unstructured.Unstructured{Object: map[string]any{"kind": "Scale", "apiVersion": "autoscaling/v1"}}
		scale.SetNamespace(o.GetNamespace())
		scale.SetName(o.GetName())
		scale.SetUID(o.GetUID())
		scale.SetResourceVersion(s.store(t.resource, t.key(), o, true).GetResourceVersion())
		answer(w, shown(r, scale))
	default:
		answer(w, s.store(t.resource, t.key(), o, true).Object)
	}
}

func merge(into, from map[string]any) {
	for key, value := range from {
		inner, ok := value.(map[string]any)
		if have, isMap := into[key].(map[string]any); ok && isMap {
			merge(have, inner)
		} else {
			into[key] = value
		}
	}
}

// restore makes a backup the state of the server: one pod, at an old version. Watches end.
func (s *apiServer) restore(resource string, uid types.UID, version int64) {
	s.mu.Lock()
	s.version, s.events, s.objects = version, nil, map[string]*unstructured.Unstructured{}
	o := &unstructured.Unstructured{Object: pod("north", "a", "n1", "Running", "deep")}
	o.SetGroupVersionKind(resources[resource])
	o.SetUID(uid)
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	s.objects[target{resource: resource, namespace: "north", name: "a"}.key()] = o
	s.refuse = func(r *http.Request) (int, string) {
		if from, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64); err == nil && from > version+10 {
			return http.StatusGone, "too old resource version"
		}
		return 0, ""
	}
	s.mu.Unlock()
	s.CloseClientConnections()
}
