package informers

import (
	"context"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// catchErrors gives what is reported by utilruntime during a test to catch.
func catchErrors(t *testing.T, catch func(error)) {
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, _ string, _ ...any) { catch(err) },
	}
}
