package informers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/informers/internal/wired"
	"github.com/tarnproject/tarn/kube"
)

// clientsets lets the informers of a factory send the requests of its clientset and decode
// the answers with package kube. That takes a quarter of client-go's CPU, without a change
// of the program: a clientset would decode every object first, and sharing equal parts
// would come on top.
//
// Only client-go's own clientset is recognised, because only its requests are known. A type
// that embeds one may have its own methods for some collections, one made of a REST client
// may have any path, and a fake one sends no requests; for these three, informers call the
// methods of the client. clientsets belongs to one factory, whose lock guards it.
type clientsets struct {
	// readers has one client for each REST client. A clientset has one for each group version.
	readers map[*rest.RESTClient]*kube.Client
}

// of returns a client that sends the requests of a clientset for a collection, or nil if its
// requests are not known.
func (s *clientsets) of(client kubernetes.Interface, c collection) *kube.Client {
	clientset, ok := client.(*kubernetes.Clientset)
	if !ok || clientset == nil {
		return nil
	}
	own, ok := c.rest(clientset).(*rest.RESTClient)
	if !ok || own == nil {
		return nil
	}
	if s.readers == nil {
		s.readers = map[*rest.RESTClient]*kube.Client{}
	}
	if s.readers[own] == nil {
		s.readers[own] = wired.ClientOf(own)
	}
	if s.readers[own] == nil || !atUsualPath(own, c.resource) {
		return nil
	}
	return s.readers[own]
}

// atUsualPath says that a REST client reads a resource where API servers have it. One that was
// given to [kubernetes.New] has a path of its own, for all group versions.
func atUsualPath(own *rest.RESTClient, resource schema.GroupVersionResource) bool {
	usual := []string{"apis", resource.Group, resource.Version, resource.Resource}
	if resource.Group == "" {
		usual = []string{"api", resource.Version, resource.Resource}
	}
	return own.Get().Resource(resource.Resource).URL().Path == own.Get().AbsPath(usual...).URL().Path
}
