package kube

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	jsonType     = runtime.ContentTypeJSON
	protobufType = runtime.ContentTypeProtobuf
)

var (
	podResource = corev1.SchemeGroupVersion.WithResource("pods")
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	pods        = Collection{Resource: podResource, Kind: podKind, Object: reflect.TypeFor[*corev1.Pod]()}
	anyPods     = Collection{Resource: podResource, Kind: podKind, Object: unstructuredType}
	podMetadata = Collection{Resource: podResource, Kind: podKind, Object: metadataType}
)

// server is an API server whose answers the test writes.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

// serve starts a server; http2 makes it speak TLS and HTTP/2.
func serve(t testing.TB, http2 bool, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		handle(w, r)
	}))
	if http2 {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// seen returns get of each request.
func (s *server) seen(get func(*http.Request) string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.requests {
		all = append(all, get(r))
	}
	return all
}

// first is the first request; others may come meanwhile.
func (s *server) first() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[0]
}

func (s *server) config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

func (s *server) client(t testing.TB, change func(*rest.Config)) *Client {
	t.Helper()
	cfg := s.config()
	if change != nil {
		change(cfg)
	}
	c, err := NewClient(cfg, WithHTTPClient(s.Client()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newSource[T any](t testing.TB, s *server, c Collection, opts SourceOptions) *Source[T] {
	t.Helper()
	source, err := NewSource[T](s.client(t, nil), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func newPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%d", i), Namespace: "default", UID: types.UID(fmt.Sprintf("uid-%d", i)),
			ResourceVersion: fmt.Sprint(100 + i), Labels: map[string]string{"app": "web", "n": fmt.Sprint(i)},
			Annotations: map[string]string{"quoted": `he said "\\" {[`, "text": "line\nline\tÜ\u2028"},
		},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{
			Name: "c", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "EMPTY"}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
}

func newPods(n int) []*corev1.Pod {
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i] = newPod(i)
	}
	return all
}

func encode(t testing.TB, contentType string, o runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	if !ok {
		t.Fatalf("no serializer for %s", contentType)
	}
	var encoder runtime.Encoder = info.Serializer
	if _, untyped := o.(runtime.Unstructured); !untyped {
		encoder = scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	}
	raw, err := runtime.Encode(encoder, o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// podList is a list as the server writes it.
func podList(t testing.TB, contentType string, pods []*corev1.Pod, version string) []byte {
	t.Helper()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	return encode(t, contentType, list)
}

// event is a watch event as the server writes it.
func event(t testing.TB, contentType, kind string, o runtime.Object) []byte {
	t.Helper()
	return rawEvent(t, contentType, kind, encode(t, contentType, o))
}

func rawEvent(t testing.TB, contentType, kind string, object []byte) []byte {
	t.Helper()
	if contentType == jsonType {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", kind, bytes.TrimSpace(object))
	}
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
	raw, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return framed(raw)
}

func framed(raw []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

func bookmark(t testing.TB, contentType, version string, initialEnd bool) []byte {
	t.Helper()
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if initialEnd {
		o.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return event(t, contentType, "BOOKMARK", o)
}

// answer writes a whole body.
func answer(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}

// wants says whether the request's first choice is protobuf.
func wants(r *http.Request, contentType string) bool {
	return strings.HasPrefix(r.Header.Get("Accept"), contentType)
}

func packed(raw []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(raw)
	_ = w.Close()
	return b.Bytes()
}

func toUnstructured(t testing.TB, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(encode(t, jsonType, o), u); err != nil {
		t.Fatal(err)
	}
	return u
}
