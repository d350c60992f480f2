package e2e

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Whatever a test starts, it ends; scenarios check it one by one as well.
func TestMain(m *testing.M) {
	if told := os.Getenv(childVariable); told != "" {
		fmt.Fprintln(os.Stderr, runChild(told, os.Stdin, os.Stdout))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
