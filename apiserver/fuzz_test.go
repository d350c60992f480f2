package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ask sends a request that gives up at once, so that watches end.
func ask(server *Server, method, path, contentType, body string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	request := (&http.Request{
		Method: method, URL: &url.URL{Path: "/"}, Header: http.Header{}, Host: "x",
		Body: http.NoBody,
	}).WithContext(ctx)
	if parsed, err := url.ParseRequestURI(path); err == nil {
		request.URL = parsed
	}
	if body != "" {
		request.Body = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)).Body
	}
	request.Header.Set("Content-Type", contentType)
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	return recorder
}

// sound fails the test unless an answer is one that a client can read.
func sound(t *testing.T, answer *httptest.ResponseRecorder) {
	t.Helper()
	if answer.Code < 200 || answer.Code > 599 {
		t.Fatalf("code %d", answer.Code)
	}
	if answer.Header().Get("Content-Type") != "application/json" {
		return
	}
	decoder := json.NewDecoder(answer.Body)
	for decoder.More() {
		var value map[string]any
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("the answer is no JSON: %v", err)
		}
		if answer.Code >= 400 && (value["kind"] != "Status" || value["message"] == "") {
			t.Fatalf("code %d without a status: %v", answer.Code, value)
		}
	}
}

func fuzzServer(f *testing.F) *Server {
	server := New(Options{HistorySize: 100})
	f.Cleanup(server.Close)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"l": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}, {Name: "d"}}},
	}
	if err := server.Put(configMapNamed("a", nil), pod); err != nil {
		f.Fatal(err)
	}
	if err := server.Register(Kind{Group: "example.org", Version: "v1", Kind: "Widget"}); err != nil {
		f.Fatal(err)
	}
	return server
}

// FuzzRequest: no request, however strange, gets an answer that is not one.
func FuzzRequest(f *testing.F) {
	for _, calls := range conversations {
		for _, c := range calls {
			f.Add(c.method, c.path, c.kind, c.body)
		}
	}
	f.Add("GET", "/openapi/v3", "", "")
	f.Add("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1"}`)
	server := fuzzServer(f)
	f.Fuzz(func(t *testing.T, method, path, contentType, body string) {
		sound(t, ask(server, method, path, contentType, body))
	})
}

// FuzzQuery: selectors, versions, tokens and the rest, on lists and watches.
func FuzzQuery(f *testing.F) {
	f.Add("l in (x,y),!z", "metadata.name!=a", "1005", "Exact", "", "1", true)
	f.Add("", "spec.nodeName=", "0", "NotOlderThan", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9", "x", false)
	server := fuzzServer(f)
	f.Fuzz(func(t *testing.T, labels, fields, version, match, token, limit string, watch bool) {
		query := url.Values{"labelSelector": {labels}, "fieldSelector": {fields}, "resourceVersion": {version}, "resourceVersionMatch": {match}, "continue": {token}, "limit": {limit}}
		if watch {
			query.Set("watch", "1")
		}
		sound(t, ask(server, "GET", "/api/v1/pods?"+query.Encode(), "", ""))
	})
}

// FuzzPatch: whatever a patch does, the object stays one that can be read.
func FuzzPatch(f *testing.F) {
	f.Add(uint8(0), `[{"op":"replace","path":"/spec/containers/0","value":null}]`)
	f.Add(uint8(1), `{"spec":{"containers":null},"metadata":{"labels":{"l":null}}}`)
	f.Add(uint8(2), `{"spec":{"containers":[{"name":"c","$patch":"delete"},{"name":"e"}],"$setElementOrder/containers":[{"name":"e"}]}}`)
	server := fuzzServer(f)
	f.Fuzz(func(t *testing.T, kind uint8, patch string) {
		name := []string{jsonType, merge, smart}[kind%3]
		for _, path := range []string{"/api/v1/namespaces/default/pods/p", "/api/v1/namespaces/default/pods/p/status", "/api/v1/namespaces/default/configmaps/a"} {
			sound(t, ask(server, "PATCH", path, name, patch))
		}
		answer := ask(server, "GET", "/api/v1/pods", "", "")
		if answer.Code != http.StatusOK {
			t.Fatalf("after the patch: %d %s", answer.Code, answer.Body)
		}
		sound(t, answer)
	})
}
