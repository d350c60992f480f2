// Matrix builds and tests the released modules with each of the last three minor
// versions of client-go and controller-runtime, and prints a table of what compiles and
// what passes, in Markdown.
//
// Usage, in the root of the repository:
//
//	matrix [-only 0.36] [-keep]
//
// It works on a copy in a scratch directory. The exit code is 1 if something that is
// expected to pass does not; minors.go has what is expected.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tarnproject/tarn/tools/internal/tree"
)

func main() {
	only := flag.String("only", "", "the minor version of client-go to test, such as 0.36; all if empty")
	keep := flag.Bool("keep", false, "leave the scratch directory, with a log for each step")
	flag.Parse()
	chosen := choose(minors, *only)
	if len(chosen) == 0 || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "matrix: there is no minor version %q; see tools/matrix/minors.go\n", *only)
		os.Exit(2)
	}
	scratch, err := os.MkdirTemp("", "matrix")
	if err == nil {
		if !*keep {
			defer os.RemoveAll(scratch)
		}
		var bad bool
		if bad, err = run(chosen, scratch); err == nil && bad {
			defer os.Exit(1)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		defer os.Exit(1)
	}
	if *keep {
		fmt.Println("kept:", scratch)
	}
}

// choose returns the selected minors.
func choose(all []minor, only string) (chosen []minor) {
	for _, m := range all {
		if only == "" || strings.HasPrefix(m.clientGo, "v"+only+".") {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

func run(chosen []minor, scratch string) (bad bool, err error) {
	var columns []column
	for _, m := range chosen {
		dir := filepath.Join(scratch, m.clientGo)
		if err := tree.Copy(dir); err != nil {
			return false, err
		}
		begun := time.Now()
		c := column{minor: m, cells: map[string]cell{}}
		if err := m.pin(dir); err != nil {
			return false, err
		}
		for _, p := range testSets {
			got := m.try(dir, p)
			c.cells[p.name] = got
			bad = bad || got.unexpected
			fmt.Fprintf(os.Stderr, "client-go %s, %s: %s (%s)\n", m.clientGo, p.name, got.text, time.Since(begun).Round(time.Second))
		}
		c.took = time.Since(begun)
		columns = append(columns, c)
	}
	fmt.Print(table(columns))
	return bad, nil
}
