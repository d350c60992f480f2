package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"runtime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	patchtypes "k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
)

var serverVersion = &apiversion.Info{
	Major: "1", Minor: "36", GitVersion: "v1.36.0-tarn", GitTreeState: "clean",
	GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
}

// serveSchema answers under /openapi: what clients look for before they write,
// which is that there is a server-side check of fields, and the types, for
// kubectl explain and for clients that make patches by schema.
func serveSchema(w http.ResponseWriter, r *http.Request, c *catalog, parts []string) bool {
	switch {
	case len(parts) == 1 && parts[0] == "v3":
		sendDocument(w, r, c.schemaIndex())
	case len(parts) > 1 && parts[0] == "v3":
		gv, ok := schemaVersion(parts[1:])
		if !ok || !c.has(gv) {
			http.NotFound(w, r)
			return true
		}
		sendDocument(w, r, c.schemaOf(gv))
	default:
		http.NotFound(w, r)
	}
	return true
}

func sendDocument(w http.ResponseWriter, r *http.Request, document any) {
	data, err := encodeJSON(document)
	if err != nil {
		sendError(w, r, err)
		return
	}
	send(w, r, http.StatusOK, asJSON, body{data})
}

func schemaVersion(parts []string) (schema.GroupVersion, bool) {
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return schema.GroupVersion{}, false
}

func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// schemaIndex lists the documents, each with a hash of what is in it.
func (c *catalog) schemaIndex() any {
	type place struct {
		URL string `json:"serverRelativeURL"`
	}
	paths := map[string]place{}
	for _, group := range c.groups {
		for _, version := range c.versions[group] {
			gv := schema.GroupVersion{Group: group, Version: version}
			var names strings.Builder
			for _, e := range c.of(gv) {
				fmt.Fprintln(&names, e.plural, e.kind, e.namespaced)
			}
			hash := sha256.Sum256([]byte(names.String()))
			paths[versionPath(gv)] = place{"/openapi/v3/" + versionPath(gv) + "?hash=" + strings.ToUpper(hex.EncodeToString(hash[:8]))}
		}
	}
	return map[string]any{"paths": paths}
}

func (c *catalog) schemaOf(gv schema.GroupVersion) any {
	parameters := []any{}
	for _, name := range []string{"dryRun", "fieldManager", "fieldValidation"} {
		parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	paths, types := map[string]any{}, models{}
	for _, e := range c.of(gv) {
		types.addEndpoint(e)
		path := "/" + versionPath(gv) + "/"
		if e.namespaced {
			path += "namespaces/{namespace}/"
		}
		paths[path+e.plural+"/{name}"] = map[string]any{
			"patch": map[string]any{
				"operationId":                     "patch" + e.kind,
				"x-kubernetes-action":             "patch",
				"x-kubernetes-group-version-kind": metav1.GroupVersionKind{Group: e.group, Version: e.version, Kind: e.kind},
				"parameters":                      parameters,
				"requestBody":                     map[string]any{"content": e.patchTypes()},
				"responses":                       map[string]any{"200": map[string]any{"description": "OK"}},
			},
		}
	}
	return map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": "Kubernetes", "version": serverVersion.GitVersion},
		"paths":      paths,
		"components": map[string]any{"schemas": types},
	}
}

// patchTypes are the media types of patches that an endpoint takes.
func (e *endpoint) patchTypes() map[string]any {
	taken := map[string]any{string(patchtypes.JSONPatchType): map[string]any{}, string(patchtypes.MergePatchType): map[string]any{}}
	if !e.custom {
		taken[string(patchtypes.StrategicMergePatchType)] = map[string]any{}
	}
	return taken
}
