package ctrlcache

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Marks is how many writes of a kind are remembered.
func Marks(c cache.Cache, gvk schema.GroupVersionKind) int {
	w := c.(*ctrlCache).writes
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.of(gvk).marks)
}
