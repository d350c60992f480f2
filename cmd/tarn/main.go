// Command tarn shows live copies of what a Kubernetes cluster holds; "tarn --help"
// lists its commands, which are in package cli.
package main

import (
	"os"

	"github.com/tarnproject/tarn/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
