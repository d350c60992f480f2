package apiserver

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
)

// An object is encoded once for each form, and the encodings that are kept are
// bounded.
func TestEncodedOnce(t *testing.T) {
	server := New(Options{CacheBytes: 4096})
	t.Cleanup(server.Close)
	if err := server.Put(configMapNamed("a", nil)); err != nil {
		t.Fatal(err)
	}
	e := server.catalog.Load().forKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	found := server.state.find(e.content, "default/a")
	inJSON := form{endpoint: e, media: asJSON}
	first := must[[]byte](t)(server.encodings.of(found, inJSON))
	if again := must[[]byte](t)(server.encodings.of(found, inJSON)); &first[0] != &again[0] {
		t.Error("encoded twice")
	}
	if raw := must[[]byte](t)(server.encodings.of(found, form{endpoint: e, media: asProtobuf})); &raw[0] != &found.raw[0] {
		t.Error("what is stored is encoded again")
	}
	for server.encodings.bytes != 0 {
		server.encodings.keep(found, 100)
	}
	if len(found.forms) != 0 {
		t.Error("the bound of the cache has been passed, and it is still full")
	}
}

// Envelopes and frames are what the library of Kubernetes makes and reads.
func TestWire(t *testing.T) {
	object := configMapNamed("a", map[string]string{"l": "x"})
	object.Data["k"] = string(bytes.Repeat([]byte("x"), 300)) // sizes of more than one byte
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	data := must[[]byte](t)(object.Marshal())
	decoded, kind, err := protobuf.NewSerializer(scheme, scheme).Decode(envelope(gvk, len(data), data), nil, nil)
	if err != nil || *kind != gvk {
		t.Fatalf("envelope: %v, %v", kind, err)
	}
	object.SetGroupVersionKind(gvk)
	decoded.GetObjectKind().SetGroupVersionKind(gvk)
	if diff := cmp.Diff(runtime.Object(object), decoded); diff != "" {
		t.Error(diff)
	}
	frame := newFramer(asProtobuf, gvk).append(nil, watch.Modified, data)
	var event metav1.WatchEvent
	if err := event.Unmarshal(frame[4:]); err != nil {
		t.Fatal(err)
	}
	if size := int(frame[2])<<8 | int(frame[3]); size != len(frame)-4 {
		t.Errorf("a frame of %d bytes says that it has %d", len(frame)-4, size)
	}
	if event.Type != "MODIFIED" || !bytes.Equal(event.Object.Raw, envelope(gvk, len(data), data)) {
		t.Errorf("frame: %s", event.Type)
	}
}
