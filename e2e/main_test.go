package e2e

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a test starts, it ends; scenarios check it one by one as well.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
