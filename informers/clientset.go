package informers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/informers/internal/wired"
	"github.com/tarnproject/tarn/kube"
)

// clientsets finds how to read the wire with a factory's client, so that its informers
// take a quarter of client-go's CPU without a change of the program: a clientset would
// decode every object, and sharing equal parts would come on top.
//
// Only client-go's own clientset is recognised, because only its requests are known. A
// client that embeds one may have methods of its own for some collections, one made of a
// REST client may have any path, and a fake one has no requests at all; the informers of all
// three go through its methods. It belongs to one factory, whose lock guards it.
type clientsets struct {
	// readers has one client for each REST client. A clientset has one for each group version.
	readers map[*rest.RESTClient]*kube.Client
}

// of returns the client for the requests that a clientset makes for a collection, or nil
// if the requests of client are not known.
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
