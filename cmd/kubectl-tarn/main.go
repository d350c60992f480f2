// Command kubectl-tarn is the program tarn as a plugin of kubectl: put into the
// PATH, it is called as "kubectl tarn".
package main

import (
	"os"

	"github.com/tarnproject/tarn/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
