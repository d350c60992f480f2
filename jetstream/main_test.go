package jetstream

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	for variable, run := range map[string]func() error{feedFrom: runFeeder, serveIn: runServer} {
		if os.Getenv(variable) != "" { // this is a process that a test kills
			if err := run(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	goleak.VerifyTestMain(m)
}
