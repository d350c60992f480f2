package web

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// What one keystroke costs in a table of 100,000 objects.
func BenchmarkFind(b *testing.B) {
	store := memory.New[*unstructured.Unstructured]()
	var items []tarn.Item[*unstructured.Unstructured]
	for i := range 100_000 {
		name := fmt.Sprintf("web-%06d-%x", i, i*2654435761%1_000_003)
		object := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{
				"name": name, "namespace": "default", "creationTimestamp": fmt.Sprintf("2026-01-01T00:%02d:%02dZ", i*7%60, i*13%60),
				"labels": map[string]any{"app.kubernetes.io/name": "web", "pod-template-hash": fmt.Sprint(i % 100), "team": "core"},
			},
			"spec": map[string]any{"nodeName": fmt.Sprint("node-", i%500)}, "status": map[string]any{"phase": "Running"},
		}}
		items = append(items, tarn.Item[*unstructured.Unstructured]{Meta: tarn.Meta{Key: tarn.Key("default/" + name)}, Object: object})
	}
	if err := store.Replace(items, tarn.At("1")); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, q, sort string }{
		{"all", "", ""}, {"word", "zzz", ""}, {"label", "team=core", ""}, {"field", "spec.nodeName=node-7", ""},
		{"sorted", "", "-metadata.creationTimestamp"}, {"word sorted", "42", "spec.nodeName"},
	} {
		q, err := parseSearch(c.q)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := find(store, q, c.sort); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
