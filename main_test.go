package tarn

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a test starts, it ends: promise 10 holds for every test here.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
