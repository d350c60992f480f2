package replay

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// addDiscovery serves what clients find resources by. It has no aggregated form;
// clients that ask for that take the plain one.
func (s *Server) addDiscovery() {
	groupVersion := metav1.GroupVersionForDiscovery{GroupVersion: CustomGroup + "/" + CustomVersion, Version: CustomVersion}
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:     CustomGroup, Versions: []metav1.GroupVersionForDiscovery{groupVersion}, PreferredVersion: groupVersion,
	}
	for path, answer := range map[string]any{
		"/version":             version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"},
		"/api":                 metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/api/v1":              resources("v1"),
		"/apis":                metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}},
		"/apis/" + CustomGroup: group,
		"/apis/" + CustomGroup + "/" + CustomVersion: resources(groupVersion.GroupVersion),
	} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			json.NewEncoder(w).Encode(answer)
		})
	}
}

func resources(groupVersion string) metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion,
		APIResources: []metav1.APIResource{{
			Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get", "list", "watch"},
		}},
	}
}
