package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cell is the result of a test set with a minor.
type cell struct {
	text string
	// unexpected says that a test set failed that should pass, or passed that should not
	// even compile, so that minors.go is out of date.
	unexpected bool
}

// command runs the go command in the copy.
func (m minor) command(dir, log string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if wrong := os.WriteFile(log, out, 0o666); wrong != nil {
		return out, wrong
	}
	return out, err
}

// pin sets the versions. It replaces and does not require them, since other modules
// require later ones.
func (m minor) pin(dir string) error {
	for _, module := range []string{".", "ctrlcache"} {
		at := filepath.Join(dir, module)
		edit := []string{"mod", "edit"}
		for _, name := range pinned {
			edit = append(edit, "-replace", name+"="+name+"@"+m.clientGo)
		}
		if module == "ctrlcache" {
			edit = append(edit, "-replace", "sigs.k8s.io/controller-runtime=sigs.k8s.io/controller-runtime@"+m.runtime)
		}
		log := filepath.Join(dir, "pin-"+filepath.Base(at)+".log")
		if out, err := m.command(at, log, edit...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if m.older && module == "." {
			if out, err := m.command(filepath.Join(dir, "informers"), log, "run", "-tags", tag, "generate.go"); err != nil {
				return fmt.Errorf("generate: %w: %s", err, out)
			}
		}
		// Files that the tag leaves out import packages that older versions do not
		// have, which go mod tidy reports; -e makes it continue.
		if out, err := m.command(at, log, "mod", "tidy", "-e"); err != nil {
			return fmt.Errorf("go mod tidy: %w: %s", err, out)
		}
	}
	return nil
}

// log is the file that keeps what a step printed.
func (m minor) log(dir, step string, p testSet) string {
	return filepath.Join(dir, step+"-"+strings.ReplaceAll(p.name, "/", "-")+".log")
}

// try builds and tests a test set.
func (m minor) try(dir string, p testSet) cell {
	at := filepath.Join(dir, p.module)
	args := []string{}
	if m.older {
		args = append(args, "-tags", tag)
	}
	log := m.log(dir, "build", p)
	out, err := m.command(at, log, append(append([]string{"build"}, args...), p.packages...)...)
	why, expected := m.missing[p.name]
	switch {
	case err != nil && expected:
		return cell{text: "does not compile"}
	case err != nil:
		return cell{text: "DOES NOT COMPILE: " + firstError(out), unexpected: true}
	case expected:
		return cell{text: "compiles, against what minors.go says: " + why, unexpected: true}
	case m.untested[p.name] != "":
		return cell{text: "compiles; not tested"}
	}
	log = m.log(dir, "test", p)
	out, err = m.command(at, log, append(append(append([]string{"test", "-json", "-run", p.tests}, args...), "-timeout", "8m"), p.packages...)...)
	passed, failed := count(out)
	switch {
	case err != nil && len(failed) > 0:
		return cell{text: fmt.Sprintf("FAILS: %s; %d tests pass", strings.Join(failed, ", "), passed), unexpected: true}
	case err != nil:
		return cell{text: "TESTS DO NOT COMPILE: " + firstError(out), unexpected: true}
	case passed == 0:
		return cell{text: "NO TEST RAN", unexpected: true}
	}
	return cell{text: fmt.Sprintf("passes, %d tests", passed)}
}

// count reads the output of go test -json: how many tests passed, not counting those
// within others, and which failed.
func count(out []byte) (passed int, failed []string) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" || strings.Contains(e.Test, "/") {
			continue
		}
		switch e.Action {
		case "pass":
			passed++
		case "fail":
			failed = append(failed, e.Test)
		}
	}
	return passed, failed
}

// firstError is the first line of what a compiler said.
func firstError(out []byte) string {
	for line := range strings.Lines(string(out)) {
		var e struct{ Action, Output string }
		if json.Unmarshal([]byte(line), &e) == nil {
			line = e.Output
		}
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go: ") {
			return line
		}
	}
	return "no message; see the log with -keep"
}
