package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Program is tarn as users have it: built, and called by command lines.
type Program struct {
	t          testing.TB
	dir        string
	kubeconfig string
}

// buildProgram builds the program under both of its names.
func buildProgram(t testing.TB, kubeconfig string) *Program {
	t.Helper()
	p := &Program{t: t, dir: t.TempDir(), kubeconfig: kubeconfig}
	build := exec.Command("go", "build", "-o", p.dir, "./cmd/tarn", "./cmd/kubectl-tarn")
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return p
}

func (p *Program) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	// Nobody else's settings; kubectl finds plugins in the PATH.
	command.Env = []string{"KUBECONFIG=" + p.kubeconfig, "HOME=" + p.dir, "PATH=" + p.dir + string(filepath.ListSeparator) + os.Getenv("PATH")}
	return command
}

// Run runs a command line that comes to an end, and returns what it printed, with
// complaints and the exit code below.
func (p *Program) Run(args ...string) string { return p.run(filepath.Join(p.dir, "tarn"), args...) }

// Plugin does the same by way of kubectl, if that was built; else by the name
// under which kubectl would call it.
func (p *Program) Plugin(args ...string) string {
	kubectl, err := findBinary("kubectl")
	if err != nil {
		return p.run(filepath.Join(p.dir, "kubectl-tarn"), args...)
	}
	return p.run(kubectl, append([]string{"tarn"}, args...)...)
}

func (p *Program) run(name string, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	command := p.command(ctx, name, args...)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("tarn %q: %v", args, err)
	}
	for line := range strings.Lines(complaints.String()) {
		out.WriteString("! " + line)
	}
	if code := command.ProcessState.ExitCode(); code != 0 {
		out.WriteString("exit code " + string(rune('0'+code)) + "\n")
	}
	return out.String()
}

// Follow starts a command line that runs until Ctrl-C. Meanwhile await waits for
// text that it prints; end presses Ctrl-C and returns all that was
// printed, the exit code too.
func (p *Program) Follow(args ...string) (await func(words string), end func() string) {
	p.t.Helper()
	running := p.start(args...)
	return running.await, running.end
}

// Running is a command line that runs until Ctrl-C.
type Running struct {
	pid int
	// await waits for text that it prints. end presses Ctrl-C, and returns all that was
	// printed. kill ends the process at once, as the kernel does when memory is short.
	await func(words string)
	end   func() string
	kill  func()
}

func (p *Program) start(args ...string) *Running {
	p.t.Helper()
	command := p.command(p.t.Context(), filepath.Join(p.dir, "tarn"), args...)
	said := &transcript{}
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	kill := func() {
		_ = command.Process.Kill()
		<-ended
	}
	await := func(words string) {
		p.t.Helper()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(said.String(), words); {
			if time.Now().After(deadline) {
				kill()
				p.t.Fatalf("tarn %q does not say %q but\n%s", args, words, said)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	end := func() string {
		p.t.Helper()
		_ = command.Process.Signal(os.Interrupt)
		select {
		case err := <-ended:
			if err != nil {
				p.t.Errorf("tarn %q, interrupted: %v", args, err)
			}
		case <-time.After(30 * time.Second):
			kill()
			p.t.Errorf("tarn %q does not end", args)
		}
		return said.String()
	}
	return &Running{pid: command.Process.Pid, await: await, end: end, kill: kill}
}

// transcript is what a program has printed so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

var _ io.Writer = (*transcript)(nil)

func (t *transcript) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(text)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
