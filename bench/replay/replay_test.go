package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tarnproject/tarn/bench/podset"
)

const (
	testPods, testUpdates = 40, 6
	asMetadata            = typeProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func testSet(t *testing.T) *podset.Set {
	t.Helper()
	source, err := podset.New("test", podset.Generate(2))
	if err != nil {
		t.Fatal(err)
	}
	set, err := source.Make(podset.ReplicaSets, testPods)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func start(t *testing.T, compress bool, formats ...Format) (string, *podset.Set) {
	t.Helper()
	set := testSet(t)
	server, err := NewOf("test", set, Config{Updates: testUpdates, Formats: formats, Gzip: compress})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	return listener.URL, set
}

func get(t *testing.T, url, accept string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func body(t *testing.T, url, accept string) []byte {
	t.Helper()
	response := get(t, url, accept)
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", url, response.Status, text)
	}
	return text
}

func pods(t *testing.T, raws [][]byte) []corev1.Pod {
	t.Helper()
	list := make([]corev1.Pod, len(raws))
	for i, raw := range raws {
		if err := list[i].Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// The bodies are put together by hand; they must be, byte for byte, what the
// encoders of a kube-apiserver make of the same objects.
func TestListsAreWhatAKubeAPIServerWrites(t *testing.T) {
	url, set := start(t, false, Protobuf, JSON, Metadata, Custom)
	list := &corev1.PodList{Items: pods(t, set.Pods)}
	list.ResourceVersion = "10000040"
	list.APIVersion, list.Kind = "v1", "PodList"
	partial := &metav1.PartialObjectMetadataList{ListMeta: list.ListMeta}
	partial.APIVersion, partial.Kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	custom := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "PodList", "metadata": map[string]any{"resourceVersion": "10000040"},
	}}
	for i := range list.Items {
		partial.Items = append(partial.Items, metav1.PartialObjectMetadata{ObjectMeta: list.Items[i].ObjectMeta})
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		object["apiVersion"], object["kind"] = "bench.example.com/v1", "Pod"
		custom.Items = append(custom.Items, unstructured.Unstructured{Object: object})
	}
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	for _, test := range []struct {
		path, accept string
		encode       func(io.Writer) error
	}{
		{corePath, typeProtobuf, func(w io.Writer) error { return encoder.Encode(list, w) }},
		{corePath, asMetadata, func(w io.Writer) error { return encoder.Encode(partial, w) }},
		{corePath, typeJSON, func(w io.Writer) error { return json.NewEncoder(w).Encode(list) }},
		{customPath, typeJSON, func(w io.Writer) error { return unstructured.UnstructuredJSONScheme.Encode(custom, w) }},
	} {
		var want bytes.Buffer
		if err := test.encode(&want); err != nil {
			t.Fatal(err)
		}
		if got := body(t, url+test.path, test.accept); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s as %s: %d bytes, want %d, that differ from %q on where there is %q", test.path, test.accept,
				len(got), want.Len(), after(got, want.Bytes()), after(want.Bytes(), got))
		}
	}
}

// after shows where a begins to differ from b.
func after(a, b []byte) []byte {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[i:min(len(a), i+60)]
}

func TestListsComeInPages(t *testing.T) {
	url, set := start(t, false, Protobuf, Custom)
	var names []string
	sizes := []int{}
	next := ""
	for {
		var list corev1.PodList
		text := body(t, url+customPath+"?limit=15&continue="+next, typeJSON)
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		var inProtobuf corev1.PodList
		decoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
		if _, _, err := decoder.Decode(body(t, url+corePath+"?limit=15&continue="+next, typeProtobuf), nil, &inProtobuf); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(list.ListMeta, inProtobuf.ListMeta); diff != "" {
			t.Errorf("the page's metadata differs between JSON and protobuf: %s", diff)
		}
		for _, pod := range list.Items {
			names = append(names, pod.Name)
		}
		sizes = append(sizes, len(list.Items))
		if next = list.Continue; next == "" {
			break
		}
		if *list.RemainingItemCount != int64(testPods-len(names)) {
			t.Errorf("%d items remain after %d", *list.RemainingItemCount, len(names))
		}
	}
	want := []string{}
	for _, key := range set.Keys {
		want = append(want, key.Name)
	}
	if !cmp.Equal(names, want) || !cmp.Equal(sizes, []int{15, 15, 10}) {
		t.Errorf("pages of %v, all in order: %v", sizes, cmp.Equal(names, want))
	}
}

func TestAWatchSendsTheCollectionThenBursts(t *testing.T) {
	url, set := start(t, false, Protobuf)
	response := get(t, url+corePath+"?watch=true&sendInitialEvents=true", typeProtobuf)
	if got := response.Header.Get("Content-Type"); got != typeProtobuf+";stream=watch" {
		t.Errorf("content type %s", got)
	}
	frames := bufio.NewReader(response.Body)
	next := func() (string, *corev1.Pod) {
		var length uint32
		if err := binary.Read(frames, binary.BigEndian, &length); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, length)
		if _, err := io.ReadFull(frames, frame); err != nil {
			t.Fatal(err)
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(frame); err != nil {
			t.Fatal(err)
		}
		object, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(event.Object.Raw, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		pod := object.(*corev1.Pod)
		if pod.Kind != "Pod" || pod.APIVersion != "v1" {
			t.Errorf("the object says it is a %s %s", pod.APIVersion, pod.Kind)
		}
		pod.TypeMeta = metav1.TypeMeta{}
		return event.Type, pod
	}
	for i, want := range pods(t, set.Pods) {
		if kind, pod := next(); kind != "ADDED" || !cmp.Equal(pod, &want) {
			t.Fatalf("event %d: %s %s, want %s as it is", i, kind, pod.Name, want.Name)
		}
	}
	if kind, pod := next(); kind != "BOOKMARK" || pod.Annotations[metav1.InitialEventsAnnotationKey] != "true" || pod.ResourceVersion != "10000040" {
		t.Fatalf("%s with %v at %s, want the end of the initial events", kind, pod.Annotations, pod.ResourceVersion)
	}
	control := Control{url}
	info, err := control.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Pods != testPods || info.Updates != testUpdates || info.Origin != "test" || info.Bytes[Protobuf] == 0 {
		t.Errorf("info %+v", info)
	}
	// The same burst may be sent again, and another one.
	for _, span := range [][2]int{{0, 2}, {0, 2}, {2, testUpdates}} {
		if err := control.Burst(t.Context(), Protobuf, span[0], span[1]); err != nil {
			t.Fatal(err)
		}
		for i := span[0]; i < span[1]; i++ {
			if kind, pod := next(); kind != "MODIFIED" || pod.ResourceVersion != info.UpdateVersion(i) {
				t.Errorf("%s at %s, want update %d at %s", kind, pod.ResourceVersion, i, info.UpdateVersion(i))
			}
		}
	}
	for _, span := range [][2]int{{0, 0}, {0, testUpdates + 1}, {-1, 1}} {
		if err := control.Burst(t.Context(), Protobuf, span[0], span[1]); err == nil {
			t.Errorf("a burst of %v was taken", span)
		}
	}
	if err := control.Burst(t.Context(), Custom, 0, 1); err == nil {
		t.Error("a burst of a format that is not served was taken")
	}
}

func TestOnlyLargeListsAreCompressedAndOnlyIfWanted(t *testing.T) {
	plain, _ := start(t, false, JSON)
	zipped, _ := start(t, true, JSON)
	for _, test := range []struct {
		url, query string
		want       bool
	}{
		{plain, "", false}, {zipped, "", true}, {zipped, "?limit=35", true}, {zipped, "?limit=2", false},
	} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, test.url+corePath+test.query, nil)
		request.Header.Set("Accept-Encoding", "gzip")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var text io.Reader = response.Body
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != test.want {
			t.Errorf("%q with compression %v: compressed %v", test.query, test.url == zipped, got)
		} else if got {
			if text, err = gzip.NewReader(response.Body); err != nil {
				t.Fatal(err)
			}
		}
		var list corev1.PodList
		if err := json.NewDecoder(text).Decode(&list); err != nil || len(list.Items) == 0 {
			t.Errorf("%q: %d items, error %v", test.query, len(list.Items), err)
		}
		response.Body.Close()
	}
}

func TestRequestsThatCannotBeServed(t *testing.T) {
	url, _ := start(t, false, Protobuf)
	for _, test := range []struct {
		query, accept string
		code          int32
		want          string
	}{
		{"", typeJSON, http.StatusNotAcceptable, "none of"},
		{"", asMetadata, http.StatusNotAcceptable, "none of"},
		{"?continue=x", typeProtobuf, http.StatusBadRequest, "continue token"},
		{"?continue=41", typeProtobuf, http.StatusBadRequest, "continue token"},
		{"?labelSelector=a", typeProtobuf, http.StatusBadRequest, "whole collection"},
	} {
		response := get(t, url+corePath+test.query, test.accept)
		var status metav1.Status
		if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
			t.Fatal(err)
		}
		if status.Code != test.code || response.StatusCode != int(test.code) || !strings.Contains(status.Message, test.want) {
			t.Errorf("%q as %s: %d %q, want %d %q", test.query, test.accept, status.Code, status.Message, test.code, test.want)
		}
	}
	if _, err := NewOf("test", testSet(t), Config{Formats: []Format{"yaml"}}); err == nil {
		t.Error("a format that does not exist was taken")
	}
}
