package apiserver

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a server or a test starts, it ends.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
