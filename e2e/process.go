package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// process is a program that runs until it is killed.
//
// Each has a process group of its own, which is what is killed: nothing that it
// started outlives it. Its output goes to a file, since three servers at once
// would bury the test's own words; the end of it is shown if the test fails.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended and err is set
	err  error
}

// logTail is how much of a program's output a failed test shows: the last words
// of a server that would not start fit in a few kilobytes.
const logTail = 4 << 10

// startProcess starts a program, which the caller ends. Not the test's own cleanup
// does it: a server that was started anew would then end before the copies that
// follow it, which were there first. A program that is started again under
// the same name appends to the same log.
func startProcess(t testing.TB, dir, name, path string, args ...string) *process {
	t.Helper()
	logPath := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = dir
	cmd.SysProcAttr = groupOfItsOwn()
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p
}

// showLogs prints the end of each program's output if the test has failed.
func showLogs(t testing.TB, dir string) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, path := range logs {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Log(err)
			continue
		}
		if cut := len(content) - logTail; cut > 0 {
			content = content[cut:]
		}
		t.Logf("the end of %s:\n%s", filepath.Base(path), content)
	}
}

// kill ends the process at once, as a crash would, and waits for it. It may be
// called more than once, and on a process that was never started.
func (p *process) kill() { p.end(syscall.SIGKILL, 10*time.Second) }

// terminate asks the process to end, and kills it if it does not.
func (p *process) terminate() { p.end(syscall.SIGTERM, 30*time.Second) }

func (p *process) end(signal syscall.Signal, timeout time.Duration) {
	if p == nil {
		return
	}
	select {
	case <-p.done:
		return
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, signal)
	select {
	case <-p.done:
	case <-time.After(timeout):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

// ended returns why the process is no longer there, nil while it is.
func (p *process) ended() error {
	select {
	case <-p.done:
		if p.err == nil {
			return fmt.Errorf("%s has ended", p.name)
		}
		return fmt.Errorf("%s has ended: %w", p.name, p.err)
	default:
		return nil
	}
}

// waitReady calls ready until it succeeds. It gives up at once when the process
// ends, and shows the last failure when the time is over.
func (p *process) waitReady(t testing.TB, within time.Duration, ready func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	err := errors.New("not tried")
	for time.Now().Before(deadline) {
		if err = ready(); err == nil {
			return
		}
		if gone := p.ended(); gone != nil {
			t.Fatalf("%v; it was not ready: %v", gone, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s is not ready after %v: %v", p.name, within, err)
}
