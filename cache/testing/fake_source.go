package framework

import (
	upstream "k8s.io/client-go/tools/cache/testing"
)

// The sources are client-go's own types: one made here serves client-go's
// informers as well.
type (
	FakeControllerSource    = upstream.FakeControllerSource
	FakePVControllerSource  = upstream.FakePVControllerSource
	FakePVCControllerSource = upstream.FakePVCControllerSource
)

// NewFakeControllerSource gives an empty source.
func NewFakeControllerSource() *FakeControllerSource {
	return upstream.NewFakeControllerSource()
}

// NewFakePVControllerSource gives an empty source of persistent volumes.
func NewFakePVControllerSource() *FakePVControllerSource {
	return upstream.NewFakePVControllerSource()
}

// NewFakePVCControllerSource gives an empty source of persistent volume claims.
func NewFakePVCControllerSource() *FakePVCControllerSource {
	return upstream.NewFakePVCControllerSource()
}
