package ondisk

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// apimachinery's second error handler sleeps if errors follow each other quickly. It
// counts from the start of the process, so that in a synctest bubble, where it is the
// year 2000, the first error would sleep for decades.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	goleak.VerifyTestMain(m)
}
