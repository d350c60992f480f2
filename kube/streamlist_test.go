package kube

import (
	"bytes"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/internal/testsize"
)

// inParts is a body that is read in parts; before calls for each part first.
type inParts struct {
	body   []byte
	part   int
	before func(read int)
	at     int
}

func (p *inParts) Read(b []byte) (int, error) {
	if p.at == len(p.body) {
		return 0, io.EOF
	}
	p.before(p.at)
	n := copy(b[:min(len(b), p.part)], p.body[p.at:])
	p.at += n
	return n, nil
}

// A list without pages must not be in memory as a whole: items are handed over while the
// body arrives, all of them, once and in order.
func TestListIsStreamed(t *testing.T) {
	objects := testsize.Of(20_000, 5_000)
	all := newPods(objects)
	for _, test := range []struct {
		name        string
		contentType string
		media       media
		collection  Collection
	}{
		{"protobuf", protobufType, mediaProtobuf, pods},
		{"JSON", jsonType, mediaJSON, pods},
		{"untyped", jsonType, mediaJSON, Collection{Resource: pods.Resource, Kind: pods.Kind, Object: unstructuredType}},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := podList(t, test.contentType, all, "9")
			source := offline[any](t, test.collection, SourceOptions{})
			next, late := 0, 0
			take := func(items []any) {
				for _, object := range items {
					m, err := describe(object)
					if want, _ := describe(all[next]); err != nil || m != want {
						t.Fatalf("item %d is %v, %v; want %v", next, m, err, want)
					}
					if u, ok := object.(*unstructured.Unstructured); ok && u.GetKind() != "Pod" {
						t.Fatalf("item %d has kind %q", next, u.GetKind())
					}
					next++
				}
			}
			in := &inParts{body: body, part: blockSize, before: func(read int) {
				// Some blocks are in flight.
				if behind := read - next*(len(body)/objects); behind > late {
					late = behind
				}
			}}
			page, err := source.readPage(t.Context(), bodyOf(test.media, in), nil, take)
			if err != nil || page.Version != "9" || len(page.Items)+len(page.Bad) > 0 || next != objects {
				t.Fatalf("%d items were given, %d and %d bad ones are left, version %s: %v", next, len(page.Items), len(page.Bad), page.Version, err)
			}
			if most := (3*workers() + 3) * blockSize; late > most {
				t.Errorf("up to %d bytes of %d were read and not given, want at most %d", late, len(body), most)
			}
		})
	}
}

// Items that are untyped, without a kind, in a collection whose kind is not known, get
// their kind from the list, which may come last.
func TestStreamedItemsWithoutAKind(t *testing.T) {
	body := []byte(`{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"metadata":{"resourceVersion":"7"},"kind":"ThingList","apiVersion":"x/v1"}`)
	source := offline[*unstructured.Unstructured](t, Collection{Resource: pods.Resource, Object: unstructuredType}, SourceOptions{})
	page, err := source.readPage(t.Context(), bodyOf(mediaJSON, bytes.NewReader(body)), nil, func([]*unstructured.Unstructured) {
		t.Error("items were given before their kind was known")
	})
	if err != nil || len(page.Items) != 2 || page.Items[1].GetKind() != "Thing" {
		t.Errorf("%v, %v", page.Items, err)
	}
}

// Protobuf lets a field be there twice, and the last one counts. Items that were given
// cannot be taken back, so that is an error, unless none was given yet.
func TestStreamedItemsTwice(t *testing.T) {
	list := podList(t, protobufType, newPods(5000), "9")
	at := bytes.Index(list, []byte("PodList")) + len("PodList")
	body := append(bytes.Clone(list), list[at:]...)
	source := offline[*corev1.Pod](t, pods, SourceOptions{})
	if page, err := source.readPage(t.Context(), bodyOf(mediaProtobuf, bytes.NewReader(body)), nil, nil); err != nil || len(page.Items) != 5000 {
		t.Fatalf("%d items, %v", len(page.Items), err)
	}
	given := 0
	page, err := source.readPage(t.Context(), bodyOf(mediaProtobuf, bytes.NewReader(body)), nil, func(items []*corev1.Pod) { given += len(items) })
	if err == nil && given+len(page.Items) != 5000 {
		t.Errorf("%d items are given, and %d left, without an error", given, len(page.Items))
	}
}
