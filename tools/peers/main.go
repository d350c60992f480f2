// Peers runs the tests of other projects twice, with client-go's and controller-runtime's
// caches and with ours in their place, and prints the tests whose results differ.
//
// Usage, in the root of the repository:
//
//	peers [-ci] [-only name,name] [-packages ./a,./b] [-list] [-keep] [-runs 3]
//
// Each project is a module at a pinned version; projects.go has them. It is copied to a
// scratch directory, where it requires this tree and the versions of client-go and
// controller-runtime that this tree requires, for both runs. The sources stay as they
// are: what is swapped is given to the go command as an overlay.
//
// The exit code is 1 if a test that passes with theirs does not pass with ours, unless
// projects.go knows it, and if a difference that projects.go knows is no longer there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "names of projects, separated by commas; all if empty")
	ci := flag.Bool("ci", false, "only the projects and swaps that are quick enough for every change")
	packages := flag.String("packages", "", "packages to test in the place of those in projects.go, separated by commas")
	list := flag.Bool("list", false, "print the projects, and run nothing")
	keep := flag.Bool("keep", false, "leave the scratch directory, with a log of each run")
	runs := flag.Int("runs", 3, "how often a test that differs is run again, with theirs and with ours")
	flag.Parse()
	chosen, err := choose(projects, *only, *ci)
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("what is %q? see -help", flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
	if *packages != "" {
		for i := range chosen {
			chosen[i].packages = strings.Split(*packages, ",")
		}
	}
	if *list {
		for _, p := range chosen {
			fmt.Println(p)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, chosen, *ci, *keep, *runs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// choose returns the selected projects, and an error if a name is unknown.
func choose(all []project, only string, ci bool) (chosen []project, err error) {
	names := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p project) bool { return p.name == name }) {
			return nil, fmt.Errorf("there is no project %q; -list prints their names", name)
		}
	}
	for _, p := range all {
		if (len(names) == 0 || slices.Contains(names, p.name)) && (p.ci != nil || !ci) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no project is chosen; -list prints their names")
	}
	return chosen, nil
}

// run tests the projects one after the other, so that they do not slow each other down.
func run(ctx context.Context, chosen []project, ci, keep bool, runs int) error {
	tree, err := os.Getwd()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println("the scratch directory is", scratch)
	} else {
		defer os.RemoveAll(scratch)
	}
	var bad []string
	for _, p := range chosen {
		begun := time.Now()
		if ci && p.ciPackages != nil {
			p.packages = p.ciPackages
		}
		m := &module{project: p, ctx: ctx, tree: tree, dir: filepath.Join(scratch, p.name), runs: runs, ciOnly: ci}
		fine, err := m.compare()
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted in %s", p.name)
		}
		if err != nil {
			fmt.Printf("%s: %v\n", p.name, err)
		}
		if err != nil || !fine {
			bad = append(bad, p.name)
		}
		fmt.Printf("%s took %s\n", p.name, time.Since(begun).Round(time.Second))
		if !keep {
			if err := os.RemoveAll(m.dir); err != nil {
				return err
			}
		}
	}
	if bad != nil {
		return fmt.Errorf("not as with client-go or controller-runtime: %s", strings.Join(bad, ", "))
	}
	return nil
}
