package ondisk

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// apimachinery's second error handler slows down whoever reports many errors. It counts
// from the time at which the process began, so that in a synctest bubble, where it is
// the year 2000, the first error would sleep for decades.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	goleak.VerifyTestMain(m)
}
