package ctrlcache

import (
	"strings"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn"
	tarncache "github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/kube"
)

// kept has the informer of a place kept on disk.
func (c *ctrlCache) kept(informer toolscache.SharedIndexInformer, server *kube.Client, at informerKey, collection kube.Collection, options kube.SourceOptions) error {
	named := c.scopeName(at)
	return tarncache.Keep(informer, func(objects tarncache.ObjectTraits) (tarn.Sink[any], error) {
		options.Unshared = !objects.Shared
		of := server.Origin(collection, options)
		of.Transformed, of.Transform, of.Part = objects.Transformed, objects.Transform, named
		return c.keep.Open(of)
	}, c.keep.Strip)
}

// scopeName tells an informer from others of the same resource that the cache may
// have, in any order of creation: unstructured ones from typed ones, and those of
// named namespaces.
func (c *ctrlCache) scopeName(at informerKey) string {
	var names []string
	if at.form == unstructuredForm && c.opts.Scheme.Recognizes(at.gvk) {
		names = append(names, "unstructured")
	}
	if at.namespace != "" {
		names = append(names, "in", at.namespace)
	}
	return strings.Join(names, "_")
}
