package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/bench/report"
)

// childVariable marks a child process, and holds its [task] in JSON.
const childVariable = "TARN_BENCH_CHILD"

// task is what one child does.
type task struct {
	// Scenario and Contender are what to run. Scenario may be a race: then
	// Server is where its pods are, and Profiles a folder for profiles, if any.
	Scenario, Contender string
	Server              address
	Profiles            string
	// Folder is where the contenders of a round keep files, Paced has updates come a
	// thousand a second.
	Folder string
	Paced  bool
	// Known describes what a real server has.
	Known *replay.Info
	// Serve has the child be a replay server instead.
	Serve *replay.Config
}

func (t task) String() string { return t.Scenario + ", " + t.Contender }

// childLimit ends a contender that hangs. The longest run, 100,000 untyped
// objects by client-go, takes about five minutes on two cores.
const childLimit = 15 * time.Minute

// childEnvironment is the same for every contender: as many threads as the
// smallest machine has cores, and the collector as it is by default.
var childEnvironment = []string{"GOMAXPROCS=2", "GOGC=100", "GOMEMLIMIT=off", "GODEBUG="}

// newChild is this program, to be started again with a task.
func newChild(ctx context.Context, t task, environment []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%s: cannot find the running program to start it again: %w", t, err)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	child := exec.CommandContext(ctx, self)
	child.Env = append(append(append(os.Environ(), childEnvironment...), environment...), childVariable+"="+string(text))
	return child, nil
}

// runChild runs one contender through one scenario in a fresh process and
// returns what it measured.
func runChild(ctx context.Context, t task, environment ...string) (report.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, childLimit)
	defer cancel()
	child, err := newChild(ctx, t, environment)
	if err != nil {
		return nil, err
	}
	// The child ends with this pipe, however this process ends.
	stdin, err := child.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	defer stdin.Close()
	// Informers log what the scenario does to them on purpose. That is worth
	// reading only when it goes wrong.
	var stderr bytes.Buffer
	child.Stderr = &stderr
	stdout, err := child.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w\n%s", t, err, tail(stderr.Bytes()))
	}
	var r report.Result
	if err := json.Unmarshal(stdout, &r); err != nil {
		return nil, fmt.Errorf("%s: unreadable result %q: %w", t, stdout, err)
	}
	return r, nil
}

// tail is the end of what a child said, where the reason of its failure is.
func tail(text []byte) []byte { return text[max(0, len(text)-8<<10):] }

// runAsChild does a child's work if this process is one.
func runAsChild() (ran bool, err error) {
	text := os.Getenv(childVariable)
	if text == "" {
		return false, nil
	}
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return true, fmt.Errorf("%s=%s: %w", childVariable, text, err)
	}
	if t.Serve != nil {
		return true, serve(*t.Serve, os.Stdin, os.Stdout)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent has gone
	}()
	ctx, cancel := context.WithTimeout(context.Background(), childLimit)
	defer cancel()
	r, err := t.run(ctx)
	if err != nil {
		return true, err
	}
	return true, json.NewEncoder(os.Stdout).Encode(r)
}

// run is the child's side of [runChild].
func (t task) run(ctx context.Context) (report.Result, error) {
	for _, r := range races {
		if e, ok := r.entry(t.Contender); ok && r.name == t.Scenario {
			return measureCopy(ctx, e.contender, t)
		}
	}
	for _, held := range trials {
		if r, ok := held.runner(t.Contender); ok && held.name == t.Scenario {
			m := newMeter()
			err := r.run(ctx, m)
			return m.result, err
		}
	}
	for _, s := range scenarios {
		if body := s.run[t.Contender]; s.name == t.Scenario && body != nil {
			m := newMeter()
			err := body(ctx, m)
			return m.result, err
		}
	}
	return nil, fmt.Errorf("%s: the task names no scenario and contender; -list shows the names", t)
}
