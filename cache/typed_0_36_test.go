//go:build tarn_client_go_0_36

package cache

import "errors"

// typed leaves an informer as it is: client-go 0.36 has no typed ones.
func typed[T any](informer SharedIndexInformer) SharedIndexInformer { return informer }

// upstreamShutDown fails: client-go 0.36 cannot shut a handler down.
func upstreamShutDown(SharedInformer, ResourceEventHandlerRegistration) error {
	return errors.New("client-go 0.36 cannot shut a handler down")
}
