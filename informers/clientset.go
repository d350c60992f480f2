package informers

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
)

// clientsets finds how to read the wire with a factory's client, so that its informers
// take a quarter of client-go's CPU without a change of the program: a clientset would
// decode every object, and sharing equal parts would come on top.
//
// Only client-go's own clientset is recognised, because only its requests are known. A
// client that embeds one may have methods of its own for some collections, and a fake one
// has no requests at all; the informers of both go through its methods. It belongs to one
// factory, whose lock guards it.
//
// Parts are shared in the pool of the process, as by informers that go through a client:
// programs often have several factories.
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
	if reader, ok := s.readers[own]; ok {
		return reader
	}
	reader, err := kube.ClientOf(own, kube.WithPool(wire.Shared()))
	if err != nil {
		return nil // it works as before, and costs more
	}
	if s.readers == nil {
		s.readers = map[*rest.RESTClient]*kube.Client{}
	}
	s.readers[own] = reader
	return reader
}
