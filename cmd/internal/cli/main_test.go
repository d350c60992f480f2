package cli

import (
	"fmt"
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
	goleak.VerifyTestMain(tests{m})
}

// tests ends the database server that they share before it is seen what they leave behind.
type tests struct{ *testing.M }

func (t tests) Run() int {
	code := t.M.Run()
	if postgresServer.server == nil {
		return code
	}
	if err := postgresServer.server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
