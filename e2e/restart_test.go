package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// A process that keeps its copies on disk is killed during a churn, the cluster
// changes, and the next process resumes from disk: it asks which cluster it talks
// to, probes the version, and watches. It reads the whole state only if its
// version was compacted. Handlers get what was on disk, and then the differences.
func TestRestart(t *testing.T) { onEach(t, 60, restarts) }

func restarts(s *testEnv) {
	s.truth = truthOfPods(s.server.Admin(), selection{namespace: namespace})
	kubeconfig, dir := s.server.writeKubeconfig(s.TempDir()), filepath.Join(s.TempDir(), "replica")
	churn := s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 100)

	first := s.startDurable(kubeconfig, dir)
	for range scriptedRounds {
		s.roundUnseen()
	}
	first.isOnDisk()
	first.kill()

	s.roundUnseen()
	s.server.WaitWrites(churn, 200)
	second := s.startDurable(kubeconfig, dir)
	s.settle(churn)
	second.equals()
	second.requested("cluster probe watch")
	second.handlerSaw(
		"stage/scripted-1: add@3 delete@3", // while nobody was there
		"stage/scripted-2: add@3 update@4",
		"stage/scripted-3: add@3 update@4",
		"stage/scripted-4: add@4",
	)

	churn = s.server.StartChurn(namespace)
	s.server.WaitWrites(churn, 100)
	second.isOnDisk()
	second.kill()
	s.roundUnseen()
	s.roundUnseen()
	s.server.Kill()
	s.server.Compact()
	s.server.Start()
	s.server.WaitWrites(churn, 200)
	third := s.startDurable(kubeconfig, dir)
	s.settle(churn)
	third.equals()
	third.requested("cluster probe watch stream") // the stream continues as a watch
	third.handlerSaw(
		"stage/scripted-2: add@4 delete@4",
		"stage/scripted-3: add@4 delete@4",
		"stage/scripted-4: add@4 update@6", // round 5 is history
		"stage/scripted-5: add@6",
		"stage/scripted-6: add@6",
	)
}

// durableProcess is a child process with copies on disk.
type durableProcess struct {
	*testEnv
	command *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
	ended   bool
}

// startDurable starts a process and waits until its copies are synced.
func (s *testEnv) startDurable(kubeconfig, dir string) *durableProcess {
	s.Helper()
	told, err := json.Marshal(childInput{kubeconfig, dir})
	if err != nil {
		s.Fatal(err)
	}
	k := &durableProcess{testEnv: s, command: exec.Command(os.Args[0])}
	k.command.Env = append(os.Environ(), childVariable+"="+string(told))
	words := &transcript{}
	k.command.Stderr = words
	answers, err1 := k.command.StdoutPipe()
	ask, err2 := k.command.StdinPipe()
	if err := errors.Join(err1, err2, k.command.Start()); err != nil {
		s.Fatal(err)
	}
	k.ask, k.answers = ask, bufio.NewReader(answers)
	s.Cleanup(func() {
		k.kill()
		if s.Failed() {
			s.Logf("the process said:\n%s", words)
		}
	})
	k.each(recovery, "synced", func(r report) error {
		if !r.Synced {
			return errors.New("it is not")
		}
		return nil
	})
	return k
}

// kill ends the process by SIGKILL.
func (k *durableProcess) kill() {
	if !k.ended {
		k.ended = true
		_ = k.command.Process.Kill()
		_ = k.command.Wait() // it was killed
	}
}

// reports asks the process for the state of its copies.
func (k *durableProcess) reports() map[string]report {
	k.Helper()
	_, err := fmt.Fprintln(k.ask)
	var line []byte
	if err == nil {
		line, err = k.answers.ReadBytes('\n')
	}
	all := map[string]report{}
	if err := errors.Join(err, json.Unmarshal(line, &all)); err != nil {
		k.Fatalf("the process does not answer: %v", err)
	}
	return all
}

// each waits until right returns no error for any copy.
func (k *durableProcess) each(within time.Duration, what string, right func(report) error) {
	k.Helper()
	err := eventually(k.T, within, func() (err error) {
		for name, r := range k.reports() {
			if wrong := right(r); wrong != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w (%s)", name, wrong, r.Health))
			}
		}
		return err
	})
	if err != nil {
		k.Fatalf("not %s after %v: %v", what, within, err)
	}
}

// isOnDisk waits until everything written so far is on disk.
func (k *durableProcess) isOnDisk() {
	k.Helper()
	now := tarn.Version(fmt.Sprint(k.server.Revision()))
	k.each(promptly, "on disk", func(r report) error {
		if r.Disk == "" || r.Disk.OlderThan(now) {
			return fmt.Errorf("it is at %s, and that is %s", r.Disk, now)
		}
		return nil
	})
}

// equals waits until stores and handlers have what the server has, and nothing
// else.
func (k *durableProcess) equals() {
	k.Helper()
	k.each(recovery, "right", func(r report) error {
		objects, err := k.truth(k.Context())
		if err != nil {
			return err
		}
		want := states(objects)
		for of, have := range map[string]map[string]string{"store": r.Store, "handler": r.Handler} {
			if !maps.Equal(want, have) {
				return fmt.Errorf("the %s has %d objects, which are not the %d of the server", of, len(have), len(want))
			}
		}
		return nil
	})
	for name, r := range k.reports() {
		for _, complaint := range r.Complaints {
			k.Errorf("%s: its handler got: %s", name, complaint)
		}
	}
}

// requested checks the requests to the server.
func (k *durableProcess) requested(want string) {
	k.Helper()
	for name, r := range k.reports() {
		if asked := strings.Join(r.Asked, " "); asked != want {
			k.Errorf("%s: it asked for %s, want %s", name, asked, want)
		}
	}
}

// handlerSaw checks the handlers' events of scripted pods.
func (k *durableProcess) handlerSaw(want ...string) {
	k.Helper()
	for name, r := range k.reports() {
		var steps []string
		for _, key := range slices.Sorted(maps.Keys(r.Steps)) {
			steps = append(steps, key+": "+strings.Join(r.Steps[key], " "))
		}
		if !slices.Equal(steps, want) {
			k.Errorf("%s: its handler got\n\t%s\nwant\n\t%s", name, strings.Join(steps, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
}
