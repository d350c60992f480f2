package apiserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is what a path under /api or /apis leads to.
type target struct {
	gv        schema.GroupVersion
	namespace string
	plural    string
	name, sub string
	// watch is for the old paths with "watch" in them.
	watch bool
}

// parsePath takes a path apart; false if no object or collection can be there.
func parsePath(path string) (target, bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	var t target
	switch {
	case parts[0] == "api" && len(parts) > 2:
		t.gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		t.gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return t, false
	}
	if parts[0] == "watch" && len(parts) > 1 {
		t.watch, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !(t.gv.Group == "" && namespaceSubresources[parts[2]]) {
		t.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 || slices.Contains(parts, "") {
		return t, false
	}
	parts = append(parts, "", "")
	t.plural, t.name, t.sub = parts[0], parts[1], parts[2]
	return t, true
}

// verb is what a GET of the target does: get, list or watch. As on a real server, the
// parameter watch counts unless its value is 0 or false; without a value it counts too.
func (t target) verb(query url.Values) string {
	asked := query["watch"]
	watches := len(asked) > 0 && asked[0] != "0" && !strings.EqualFold(asked[0], "false")
	switch {
	case t.watch || t.name == "" && watches:
		return "watch"
	case t.name == "":
		return "list"
	}
	return "get"
}

// namespaceSubresources are subresources of namespaces; other names after a namespace
// are collections inside of it.
var namespaceSubresources = map[string]bool{"status": true, "finalize": true}

// request is a parsed request for objects.
type request struct {
	*http.Request
	target
	*endpoint
	answer answer
	w      http.ResponseWriter
}

func (r *request) key() string { return joinKey(r.namespace, r.name) }

// form is the encoding of single objects for this client.
func (r *request) form() form {
	f := form{endpoint: r.endpoint, media: r.answer.media, shape: r.answer.shape}
	if f.media == asYAML {
		f.media = asJSON
	}
	return f
}

// fits says whether a resource of its scope is found at the path.
func (r *request) fits() bool {
	switch {
	case !r.namespaced:
		return r.namespace == ""
	case r.name != "":
		return r.namespace != ""
	}
	return true
}
