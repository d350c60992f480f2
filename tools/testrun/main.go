// Testrun runs go test and prints what a person wants to read: a line for each
// package, failures in full, how far it is while nothing else is said, and at the end
// which tests were skipped and why.
//
// Usage:
//
//	testrun [-note text]… -- go test arguments [-- go test arguments]…
//
// Every group of arguments is a run of its own. All are run, and the exit code is 1 if
// one fails. Notes are printed at the end with the skipped tests: they say what is not
// tested because of how the runs were chosen.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// heartbeat is how long nothing may be said.
const heartbeat = 20 * time.Second

func main() {
	notes, runs, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	out := &console{out: os.Stdout, progress: os.Stderr}
	end := out.beat(heartbeat)
	var all summary
	failed := false
	for _, args := range runs {
		fmt.Fprintln(out, "go test", strings.Join(args, " "))
		if err := run(out, &all, args); err != nil {
			fmt.Fprintln(out, "FAILED:", err)
			failed = true
		}
	}
	end()
	all.print(out, notes)
	if failed {
		os.Exit(1)
	}
}

// parse cuts the command line into notes and runs.
func parse(args []string) (notes []string, runs [][]string, err error) {
	for len(args) > 0 && args[0] != "--" {
		if args[0] != "-note" || len(args) < 2 {
			return nil, nil, fmt.Errorf("%q is not understood; usage: testrun [-note text]… -- go test arguments [-- …]", args[0])
		}
		notes, args = append(notes, args[1]), args[2:]
	}
	for _, arg := range args {
		if arg == "--" {
			runs = append(runs, nil)
			continue
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], arg)
	}
	if len(runs) == 0 {
		return nil, nil, errors.New("nothing to run; usage: testrun [-note text]… -- go test arguments [-- …]")
	}
	return notes, runs, nil
}

// run compiles and tests.
func run(out *console, all *summary, args []string) error {
	// go test does not say what it compiles; go list does, and unlike go build it links
	// nothing. What it cannot compile the tests report.
	if !strings.Contains(strings.Join(args, " "), "-run") {
		list := exec.Command(goCommand(), goArgs([]string{"list", "-e", "-export", "-test", "-v"}, compiled(args))...)
		list.Stderr = &compiling{out: out}
		_ = list.Run()
	}
	out.doing("compiling the tests")
	cmd := exec.Command(goCommand(), goArgs([]string{"test", "-json"}, args)...)
	cmd.Stderr = &compiling{out: out}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(stdout, out, all)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return readErr
}

func goCommand() string {
	if name := os.Getenv("GO"); name != "" {
		return name
	}
	return "go"
}

// goArgs appends arguments to a command and its flags; -C must stay the first flag.
func goArgs(command, args []string) []string {
	if len(args) > 1 && args[0] == "-C" {
		return slices.Concat(command[:1], args[:2], command[1:], args[2:])
	}
	return slices.Concat(command, args)
}

// compiled leaves out the arguments that only tests have.
func compiled(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return arg == "-short" || strings.HasPrefix(arg, "-vet=") || strings.HasPrefix(arg, "-timeout=") || strings.HasPrefix(arg, "-count=")
	})
}

// console prints, and says what is being done when nothing was printed for a while.
type console struct {
	out, progress io.Writer
	now           func() time.Time // time.Now if nil

	mu       sync.Mutex
	activity string
	printed  time.Time
}

func (c *console) clock() time.Time {
	if c.now != nil {
		return c.now()
	}
	return time.Now()
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.printed = c.clock()
	return c.out.Write(p)
}

// doing notes what is being done.
func (c *console) doing(activity string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.activity = activity
}

// tick says what is being done if nothing else was said for long.
func (c *console) tick(quiet time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock(); c.activity != "" && now.Sub(c.printed) >= quiet {
		c.printed = now
		fmt.Fprintf(c.progress, "… %s\n", c.activity)
	}
}

// beat calls tick until the returned function is called.
func (c *console) beat(quiet time.Duration) (end func()) {
	c.printed = c.clock()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(quiet / 4)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				c.tick(quiet)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// compiling reads what the go command writes to standard error: packages that it
// compiles become an activity, the rest is passed on.
type compiling struct {
	out   *console
	rest  string
	count int
}

func (w *compiling) Write(p []byte) (int, error) {
	w.rest += string(p)
	for {
		line, rest, whole := strings.Cut(w.rest, "\n")
		if !whole {
			return len(p), nil
		}
		w.rest = rest
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			w.out.doing(strings.TrimPrefix(line, "go: "))
		case isImportPath(line):
			w.count++
			w.out.doing(fmt.Sprintf("compiling: %d packages, now %s", w.count, line))
		default:
			fmt.Fprintln(w.out, line)
		}
	}
}

// isImportPath says whether a line is nothing but the name of a package, or of a variant
// that is compiled for a test: "x/y [x/y.test]".
func isImportPath(line string) bool {
	if name, test, ok := strings.Cut(line, " ["); ok && strings.HasSuffix(test, ".test]") {
		line = name
	}
	return line != "" && !strings.ContainsAny(line, " \t:\"'") && !strings.HasPrefix(line, "#")
}
