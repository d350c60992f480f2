package tarn

import (
	"context"
	"testing"
)

// cancelable is a context that ends with the test or before.
func cancelable(t *testing.T) (context.Context, func()) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}
