package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// childVariable tells a process that it is a child, and of which contender in
// which scenario: "scenario/contender".
const childVariable = "TARN_BENCH_CHILD"

// childLimit ends a contender that hangs. The longest scenario takes well under
// a minute on two cores.
const childLimit = 5 * time.Minute

// runChild runs one contender through one scenario in a fresh process and
// returns what it measured.
func runChild(ctx context.Context, scenario, contender string) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%s, %s: cannot find the running program to start it again: %w", scenario, contender, err)
	}
	ctx, cancel := context.WithTimeout(ctx, childLimit)
	defer cancel()
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), childVariable+"="+scenario+"/"+contender)
	// Both informers log what the scenario does to them on purpose. That is
	// worth reading only when it goes wrong.
	var stderr bytes.Buffer
	child.Stderr = &stderr
	stdout, err := child.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s, %s: %w\n%s", scenario, contender, err, stderr.String())
	}
	var r result
	if err := json.Unmarshal(stdout, &r); err != nil {
		return nil, fmt.Errorf("%s, %s: unreadable result %q: %w", scenario, contender, stdout, err)
	}
	return r, nil
}

// runAsChild does a child's work if this process is one.
func runAsChild() (ran bool, err error) {
	task := os.Getenv(childVariable)
	if task == "" {
		return false, nil
	}
	name, contender, _ := strings.Cut(task, "/")
	for _, s := range scenarios {
		body := s.run[contender]
		if s.name != name || body == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), childLimit)
		defer cancel()
		m := newMeter()
		if err := body(ctx, m); err != nil {
			return true, err
		}
		return true, json.NewEncoder(os.Stdout).Encode(m.result)
	}
	return true, fmt.Errorf("%s=%s names no scenario and contender; -list shows the names", childVariable, task)
}
