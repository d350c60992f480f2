package sim

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// The default handlers pace themselves by the time since the last error, which
	// in a bubble may lie decades ahead.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}
