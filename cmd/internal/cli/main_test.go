package cli

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asProgram has the test binary be the program, for tests that need it in a
// process of its own.
const asProgram = "TARN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}
